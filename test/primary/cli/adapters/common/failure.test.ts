import { reasonInWords, type Signs } from '../../../../../src/primary/cli/adapters/common/failure.js';
import { turnOf } from '../../../../support/acp-lines.js';

const signs: Signs = [
  [/rate.?limit/i, 'quota'],
  [/api.?key/i, 'auth'],
  [/model.{0,20}not found/i, 'model_unknown'],
];

describe('The words of an error', () => {
  it('give the reason of the first sign that fits', () => {
    expect(reasonInWords('a rate limit of this API key', signs, null)).toBe('quota');
    expect(reasonInWords('it broke', signs, null)).toBeUndefined();
  });

  it('mean nothing where they are those of the request', () => {
    expect(reasonInWords('no model named API-KEY', signs, turnOf('Hi', { model: 'api-key' }))).toBeUndefined();
    expect(reasonInWords('near "my API key is"', signs, turnOf('Say: my api-key is red'))).toBeUndefined();
    expect(reasonInWords('API key', signs, turnOf('x'.repeat(600_000)))).toBeUndefined();
  });

  it('of what only the request itself can feel are read in any case', () => {
    const asked = turnOf('Why is a model not found?');
    expect(reasonInWords('the model was not found', signs, asked)).toBe('model_unknown');
  });
});

import { cliError, invalid, RelayError } from '../../../../src/shared/errors.js';
import { failureKindOf, sdkMessageOf, sdkStatusOf } from '../../../../src/worker/jobs/sdk-errors.js';

describe('An error for SDKs', () => {
  it.each([
    ['overloaded', 503],
    ['quota', 429],
    ['prompt_too_long', 400],
    ['request_refused', 400],
  ] as const)('has a kind and a status that a client can react to: %s', (reason, status) => {
    const error = cliError(reason, 'why');
    expect([failureKindOf(error), sdkStatusOf(error)]).toEqual([reason, status]);
  });

  it('has the kind of a used quota if a budget is used up', () => {
    const error = new RelayError('concurrency_limited', 'why', { reason: 'budget' });
    expect([failureKindOf(error), sdkStatusOf(error)]).toEqual(['quota', 429]);
  });

  it('distinguishes an unknown model from a missing one', () => {
    const [unknown, none] = [invalid('model', 'must be one of eliza'), invalid('model', 'must be sent')];
    expect([failureKindOf(unknown), sdkStatusOf(unknown)]).toEqual(['model_unknown', 404]);
    expect([failureKindOf(none), sdkStatusOf(none)]).toEqual([null, 400]);
  });

  it('has only the status of its code if the code says enough', () => {
    expect([failureKindOf(cliError('crashed', 'why')), sdkStatusOf(cliError('crashed', 'why'))]).toEqual([null, 500]);
    const timeout = new RelayError('timeout', 'why');
    expect([failureKindOf(timeout), sdkStatusOf(timeout)]).toEqual([null, 504]);
  });

  it('begins with words by which clients recognise a prompt that is too long', () => {
    expect(sdkMessageOf(cliError('prompt_too_long', 'why'))).toMatch(/^the input exceeds the context window.*: why$/);
    expect(sdkMessageOf(cliError('crashed', 'why'))).toBe('why');
  });
});

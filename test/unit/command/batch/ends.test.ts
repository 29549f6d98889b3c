import { openAiError } from '../../../../src/command/base/errors.js';
import { endIn } from '../../../../src/command/batch/ends.js';

const head = { id: 'chatcmpl-r', model: 'm' };
const usage = { prompt_tokens: 1, completion_tokens: 2 };
const answer = {
  response: '{"a":1}',
  structured: { a: 1 },
  model: 'm',
  usage: { input_tokens: 1, output_tokens: 2 },
  request_id: 'r',
};

describe('An answer of the OpenAI API', () => {
  it('is read from a body', () => {
    const choices = [{ message: { content: '{"a":1}' }, finish_reason: 'stop' }];
    expect(endIn({ ...head, choices, usage }, true)).toEqual(answer);
  });

  it('is a failure if its JSON was cut off or is none, or if the model has refused', () => {
    const failure = (message: string, reason = 'answer_broken') => ({
      error: { code: 'cli_error', reason, message, request_id: 'r' },
    });
    const choices = (finish: string) => [{ message: { content: '{"a":' }, finish_reason: finish }];
    const cut = failure('the answer was cut off before its JSON was complete');
    expect(endIn({ ...head, choices: choices('length') }, true)).toEqual(cut);
    expect(endIn({ ...head, choices: choices('stop') }, true)).toEqual(failure('the answer is not valid JSON'));
    expect(endIn({ ...head, choices: choices('length') }, false)).toMatchObject({ response: '{"a":' });
    expect(endIn({ ...head, choices: choices('content_filter') }, false)).toEqual(failure('{"a":', 'refused'));
  });

  it.each([
    ['validation_error', { error: 'validation_error' }],
    ['rate_limited', { error: 'rate_limited' }],
    ['host_lost', { error: 'cli_error', reason: 'host_lost' }],
    ['insufficient_quota', { error: 'cli_error', reason: 'quota' }],
    ['model_not_found', { error: 'cli_error', reason: 'model_unknown' }],
    ['some other', { error: 'cli_error', reason: 'other' }],
  ])('fails with the native error that corresponds to %s', (code, meant) => {
    const body = { error: { message: 'm', type: 't', code, param: null } };
    expect(openAiError(body, 7)).toEqual({ ...meant, message: 'm', request_id: '', retry_after_seconds: 7 });
    expect(openAiError({ error: 'not_found', message: 'm' })).toBeNull();
  });
});

import { openAiError } from '../../../../src/command/base/errors.js';
import type { ServerEvent } from '../../../../src/command/base/http.js';
import { endIn, streamedEnd } from '../../../../src/command/batch/ends.js';

async function* eventsOf(...chunks: readonly (object | string)[]): AsyncGenerator<ServerEvent> {
  for (const chunk of chunks) {
    yield { event: 'message', data: typeof chunk === 'string' ? chunk : JSON.stringify(chunk) };
  }
}

const head = { id: 'chatcmpl-r', model: 'm' };
const text = (content: string) => ({ ...head, choices: [{ index: 0, delta: { content }, finish_reason: null }] });
const end = (reason: string) => ({ ...head, choices: [{ index: 0, delta: {}, finish_reason: reason }] });
const usage = { prompt_tokens: 1, completion_tokens: 2 };
const answer = {
  response: '{"a":1}',
  structured: { a: 1 },
  model: 'm',
  usage: { input_tokens: 1, output_tokens: 2 },
  request_id: 'r',
};

describe('An answer of the OpenAI API', () => {
  it('is read from a body, or assembled from its stream', async () => {
    const events = eventsOf(text('{"a"'), text(':1}'), end('stop'), { ...head, choices: [], usage }, '[DONE]');
    expect(await streamedEnd(events, true)).toEqual(answer);
    const choices = [{ message: { content: '{"a":1}' }, finish_reason: 'stop' }];
    expect(endIn({ ...head, choices, usage }, true)).toEqual(answer);
  });

  it('is a failure if its JSON was cut off, or is none', async () => {
    const failure = (message: string) => ({
      error: { code: 'cli_error', reason: 'answer_broken', message, request_id: 'r' },
    });
    const cut = failure('the answer was cut off before its JSON was complete');
    expect(await streamedEnd(eventsOf(text('{"a":'), end('length'), '[DONE]'), true)).toEqual(cut);
    const choices = (finish: string) => [{ message: { content: '{"a":' }, finish_reason: finish }];
    expect(endIn({ ...head, choices: choices('length') }, true)).toEqual(cut);
    expect(endIn({ ...head, choices: choices('stop') }, true)).toEqual(failure('the answer is not valid JSON'));
    expect(endIn({ ...head, choices: choices('length') }, false)).toMatchObject({ response: '{"a":' });
  });

  it('is an error if the stream fails, is cut off or contains a refusal', async () => {
    const error = { message: 'slow', type: 'server_error', code: 'timeout', param: null };
    await expect(streamedEnd(eventsOf(text('a'), { error }), false)).rejects.toThrow('timeout: slow');
    await expect(streamedEnd(eventsOf(text('a')), false)).rejects.toThrow('cut off');
    await expect(streamedEnd(eventsOf('<html>'), false)).rejects.toThrow('not a stream');
    expect(await streamedEnd(eventsOf(text('no'), end('content_filter'), '[DONE]'), false)).toEqual({
      error: { code: 'cli_error', reason: 'refused', message: 'no', request_id: 'r' },
    });
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

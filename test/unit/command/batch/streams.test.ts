import type { ServerEvent } from '../../../../src/command/base/http.js';
import { completionError, completionIn } from '../../../../src/command/batch/streams.js';

async function* eventsOf(...chunks: readonly (object | string)[]): AsyncGenerator<ServerEvent> {
  for (const chunk of chunks) {
    yield { event: 'message', data: typeof chunk === 'string' ? chunk : JSON.stringify(chunk) };
  }
}

const head = { id: 'chatcmpl-r', model: 'm' };
const text = (content: string) => ({ ...head, choices: [{ index: 0, delta: { content }, finish_reason: null }] });
const end = (reason: string) => ({ ...head, choices: [{ index: 0, delta: {}, finish_reason: reason }] });
const usage = { ...head, choices: [], usage: { prompt_tokens: 1, completion_tokens: 2 } };

describe('An answer of the OpenAI API', () => {
  it('is assembled from its stream', async () => {
    const events = eventsOf(text('{"a"'), text(':1}'), end('stop'), usage, '[DONE]');
    expect(await completionIn(events, true)).toEqual({
      response: '{"a":1}',
      structured: { a: 1 },
      model: 'm',
      usage: { input_tokens: 1, output_tokens: 2 },
      request_id: 'r',
    });
  });

  it('is an error if the stream fails, is cut off or contains a refusal', async () => {
    const error = { message: 'slow', type: 'server_error', code: 'timeout', param: null };
    await expect(completionIn(eventsOf(text('a'), { error }), false)).rejects.toThrow('timeout: slow');
    await expect(completionIn(eventsOf(text('a')), false)).rejects.toThrow('cut off');
    await expect(completionIn(eventsOf(text('no'), end('content_filter'), '[DONE]'), false)).rejects.toThrow('refused');
    await expect(completionIn(eventsOf('<html>'), false)).rejects.toThrow('not a stream');
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
    expect(completionError(body, 7)).toEqual({ ...meant, message: 'm', request_id: '', retry_after_seconds: 7 });
    expect(completionError({ error: 'not_found', message: 'm' })).toBeNull();
  });
});

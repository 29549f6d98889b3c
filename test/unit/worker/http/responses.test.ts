import { cancelled, cliError, invalid, RelayError, shuttingDown } from '../../../../src/shared/errors.js';
import type { Handler } from '../../../../src/worker/http/exchange.js';
import { errorBodyOf, publicCodeOf, sendError, sendJson, sendTyped } from '../../../../src/worker/http/responses.js';
import { answerOf } from '../../../support/doors/express-server.js';

describe('The body of an error', () => {
  const quota = { scope: 'account', resetsAt: 7 } as const;

  it.each<[string, RelayError, object]>([
    ['the code and the message', new RelayError('timeout', 'too long'), { error: 'timeout', message: 'too long' }],
    [
      'the path of the fault in a request',
      invalid('prompt', 'must be sent'),
      {
        ...{ error: 'validation_error', message: 'prompt: must be sent' },
        details: [{ path: 'prompt', message: 'must be sent' }],
      },
    ],
    [
      'the reason of a failed model CLI, and no details',
      cliError('quota', 'used up', { quota }),
      { error: 'cli_error', message: 'used up', reason: 'quota' },
    ],
  ])('has the request id, and %s', (_, error, body) => {
    expect(errorBodyOf(error, 'id-1')).toEqual({ ...body, request_id: 'id-1' });
  });

  it('reports an unknown conversation, and the retry time', () => {
    const error = invalid('conversation_id', 'no such conversation', 'conversation_unknown');
    expect(errorBodyOf(error, 'id-1')).toMatchObject({ error: 'validation_error', reason: 'conversation_unknown' });
    expect(errorBodyOf(shuttingDown(), 'id-1')).toMatchObject({ retry_after_seconds: 5 });
  });

  it('never contains a code that is unknown to clients', () => {
    expect(publicCodeOf(cancelled('the channel has closed'))).toBe('internal_error');
    expect(errorBodyOf(cancelled('the channel has closed'), 'id-1').error).toBe('internal_error');
    expect(publicCodeOf(new RelayError('timeout', 'late'))).toBe('timeout');
  });
});

describe('An answer', () => {
  function sentBy(send: (res: Parameters<Handler>[1]) => void, ...headers: string[]) {
    return answerOf([(_req, res) => send(res)], headers);
  }

  it('is JSON with its length in bytes', async () => {
    const { status, headers, body } = await sentBy((res) => sendJson(res, { text: 'žluť🐎' }, 201));
    expect([status, body]).toEqual([201, { text: 'žluť🐎' }]);
    expect(headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'content-length': String(Buffer.byteLength('{"text":"žluť🐎"}')),
    });
    expect(headers).not.toHaveProperty('etag');
  });

  it('is sent in full to a cache that revalidates: no answer may be stored', async () => {
    const answer = await sentBy((res) => sendTyped(res, 'text/plain', 'up 1'), 'If-None-Match: *');
    const { status, headers, text } = answer;
    expect([status, headers['content-type'], text]).toEqual([200, 'text/plain', 'up 1']);
  });

  it.each<[RelayError, number, object]>([
    [new RelayError('not_found', 'none'), 404, {}],
    [new RelayError('rate_limited', 'later', { retryAfterSeconds: 7 }), 429, { 'retry-after': '7' }],
    [new RelayError('unauthorized', 'no key'), 401, { 'www-authenticate': 'Bearer realm="prompt-relay"' }],
    [shuttingDown(), 503, { 'retry-after': '5', connection: 'close' }],
  ])('has its status and its headers if it is an error: %s', async (error, status, headers) => {
    const answer = await sentBy((res) => sendError(res, error), 'X-Request-Id: mine');
    expect(answer).toMatchObject({ status, headers, body: { error: error.code, request_id: 'mine' } });
  });
});

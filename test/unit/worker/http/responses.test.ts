import { cancelled, cliError, invalid, RelayError, shuttingDown } from '../../../../src/shared/errors.js';
import type { Handler } from '../../../../src/worker/http/exchange.js';
import { errorBodyOf, publicCodeOf, sendError, sendJson, sendTyped } from '../../../../src/worker/http/responses.js';
import { serveWith } from '../../../support/doors/express-server.js';

describe('The body of an error', () => {
  it('has the code, the message and the request id', () => {
    expect(errorBodyOf(new RelayError('timeout', 'too long'), 'id-1')).toEqual({
      error: 'timeout',
      message: 'too long',
      request_id: 'id-1',
    });
  });

  it('has the path of the fault in a request', () => {
    expect(errorBodyOf(invalid('prompt', 'must be sent'), 'id-1')).toMatchObject({
      details: [{ path: 'prompt', message: 'must be sent' }],
    });
  });

  it('has the reason of a failed model CLI, and details only for an invalid request', () => {
    const quota = { scope: 'account', resetsAt: 7 } as const;
    const body = { error: 'cli_error', message: 'used up', request_id: 'id-1', reason: 'quota' };
    expect(errorBodyOf(cliError('quota', 'used up', { quota }), 'id-1')).toEqual(body);
  });

  it('reports an unknown conversation', () => {
    const error = invalid('conversation_id', 'no such conversation', 'conversation_unknown');
    expect(errorBodyOf(error, 'id-1')).toMatchObject({ error: 'validation_error', reason: 'conversation_unknown' });
  });

  it('has the retry time', () => {
    expect(errorBodyOf(shuttingDown(), 'id-1')).toMatchObject({ retry_after_seconds: 5 });
  });

  it('never contains a code that is unknown to clients', () => {
    expect(publicCodeOf(cancelled('the channel has closed'))).toBe('internal_error');
    expect(errorBodyOf(cancelled('the channel has closed'), 'id-1').error).toBe('internal_error');
    expect(publicCodeOf(new RelayError('timeout', 'late'))).toBe('timeout');
  });
});

describe('An answer', () => {
  function answering(send: (res: Parameters<Handler>[1]) => void) {
    return serveWith([(_req, res) => send(res)]);
  }

  it('is JSON with its length in bytes', async () => {
    await using server = await answering((res) => sendJson(res, { text: 'žluť🐎' }, 201));
    const { status, headers, body } = await server.get();
    expect([status, body]).toEqual([201, { text: 'žluť🐎' }]);
    expect(headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'content-length': String(Buffer.byteLength('{"text":"žluť🐎"}')),
    });
    expect(headers).not.toHaveProperty('etag');
  });

  it('is sent in full to a cache that revalidates: no answer may be stored', async () => {
    await using server = await answering((res) => sendTyped(res, 'text/plain', 'up 1'));
    const { status, headers, text } = await server.get('If-None-Match: *');
    expect([status, headers['content-type'], text]).toEqual([200, 'text/plain', 'up 1']);
  });

  it.each<[RelayError, number, object]>([
    [new RelayError('not_found', 'none'), 404, {}],
    [new RelayError('rate_limited', 'later', { retryAfterSeconds: 7 }), 429, { 'retry-after': '7' }],
    [new RelayError('unauthorized', 'no key'), 401, { 'www-authenticate': 'Bearer realm="prompt-relay"' }],
    [shuttingDown(), 503, { 'retry-after': '5', connection: 'close' }],
  ])('has its status and its headers if it is an error: %s', async (error, status, headers) => {
    await using server = await answering((res) => sendError(res, error));
    const answer = await server.get('X-Request-Id: mine');
    expect(answer).toMatchObject({ status, headers, body: { error: error.code, request_id: 'mine' } });
  });
});

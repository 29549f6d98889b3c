import { cancelled, RelayError } from '../../../../src/shared/errors.js';
import type { Handler } from '../../../../src/worker/http/exchange.js';
import { methodNotAllowed, notFound } from '../../../../src/worker/http/responses.js';
import { RawConnection, request } from '../../../support/clients/raw-http.js';
import { answerOf, serveWith } from '../../../support/doors/express-server.js';

function throwing(thrown: unknown, before: Handler = () => {}): Handler {
  return (req, res, next) => {
    before(req, res, next);
    throw thrown;
  };
}

describe('An error thrown by a handler', () => {
  it('is answered with its code if it is an expected failure, and not logged as a defect', async () => {
    const answer = await answerOf([throwing(new RelayError('timeout', 'too long'))]);
    expect(answer).toMatchObject({ status: 504, body: { error: 'timeout', message: 'too long' } });
    expect(answer.log.events).not.toContain('internal_error');
  });

  it.each([[new TypeError('secret')], ['secret'], [{ status: 404, message: 'secret' }]])(
    'is answered with only internal_error if it is a defect, and logged: %p',
    async (thrown) => {
      const answer = await answerOf([throwing(thrown)], ['X-Request-Id: mine']);
      expect(answer).toMatchObject({ status: 500, body: { error: 'internal_error', message: 'internal error' } });
      expect(answer.text).not.toContain('secret');
      const [defect] = answer.log.entries.filter(({ event }) => event === 'internal_error');
      expect(defect).toMatchObject({ level: 'error', fields: { request_id: 'mine', error: expect.any(String) } });
    },
  );

  it('is a 400 if a path has an invalid percent escape', async () => {
    const answer = await answerOf([throwing(new URIError('secret'))]);
    expect(answer).toMatchObject({ status: 400, body: { message: 'path: contains an invalid percent escape' } });
    expect(answer.log.events).not.toContain('internal_error');
  });

  it.each<[string, Handler]>([
    ['the client has disconnected', throwing(cancelled('the client has disconnected'))],
    ['the response has begun', throwing(new RelayError('timeout', 'late'), (_req, res) => void res.write('half'))],
  ])('closes the connection if %s', async (_, handler) => {
    await using server = await serveWith([handler]);
    using connection = await RawConnection.open(server.port);
    connection.send(request('GET /'));
    await connection.closed();
    expect(server.log.events).not.toContain('internal_error');
  });

  it('does not change an answer that has been sent', async () => {
    const answered: Handler = (_req, res) => void res.status(200).json({ done: true });
    const answer = await answerOf([throwing(new Error('late'), answered)]);
    expect(answer).toMatchObject({ status: 200, body: { done: true } });
    expect(answer.log.events).toContain('internal_error');
  });
});

describe('A request without a matching route', () => {
  it('is a 404', async () => {
    expect(await answerOf([notFound])).toMatchObject({ status: 404, body: { error: 'not_found' } });
  });

  it('is a 405 with the methods that the path accepts', async () => {
    expect(await answerOf([methodNotAllowed('GET', 'HEAD')], request('POST /'))).toMatchObject({
      status: 405,
      headers: { allow: 'GET, HEAD' },
      body: { error: 'method_not_allowed', message: 'this path accepts GET, HEAD' },
    });
  });
});

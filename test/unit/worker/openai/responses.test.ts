import type { JobView } from '../../../../src/shared/background.js';
import { RelayError } from '../../../../src/shared/errors.js';
import type { AsyncHandler } from '../../../../src/worker/http/exchange.js';
import { cancelResponse, deleteResponse, getResponse } from '../../../../src/worker/openai/responses.js';
import { serveWith } from '../../../support/doors/express-server.js';
import { answerInPieces, backgroundView } from '../../../support/jobs/background-view.js';
import { FakePrimary } from '../../../support/jobs/fake-primary.js';
import { jobDone } from '../../../support/jobs/job-records.js';

const form = { route: '/v1/responses', model: 'eliza', tool: null, isStructured: false } as const;
const missing = new RelayError('not_found', 'no such job');
const jobAnswer = answerInPieces('Hello', jobDone({ estimate: { inputTokens: 3, outputTokens: 2 } }));

function response(differences: Partial<JobView>): JobView {
  return backgroundView({ form, ...differences });
}

/** Serves a handler at the path of this response. */
function serve(handler: AsyncHandler, id = 'resp_some-id') {
  return serveWith([(req, res, next) => handler(Object.assign(req, { params: { response_id: id } }), res, next)]);
}

describe('A background response', () => {
  it.each([
    ['queued', 'queued'],
    ['running', 'in_progress'],
    ['cancelled', 'cancelled'],
  ] as const)('that is %s is shown as %s, with the time as a number', async (status, expected) => {
    await using server = await serve(getResponse(new FakePrimary({ job: response({ status }) }).asPrimary));
    const { body } = await server.get();
    expect(body).toMatchObject({ id: 'resp_some-id', object: 'response', status: expected, created_at: 1, output: [] });
    expect([body.background, body.error, body.model]).toEqual([true, null, 'eliza']);
  });

  it('that has failed shows the reason', async () => {
    const failure = { code: 'timeout', message: 'too long' } as const;
    await using server = await serve(
      getResponse(new FakePrimary({ job: response({ status: 'failed', failure }) }).asPrimary),
    );
    expect((await server.get()).body).toMatchObject({ status: 'failed', error: failure });
  });

  it('that is complete shows its answer', async () => {
    await using server = await serve(getResponse(new FakePrimary({ job: response({}), jobAnswer }).asPrimary));
    const { body } = await server.get();
    expect(body).toMatchObject({ id: 'resp_some-id', status: 'completed', background: true, created_at: 1 });
    expect(body.output).toMatchObject([{ type: 'message', content: [{ type: 'output_text', text: 'Hello' }] }]);
  });

  it.each([
    ['some-id', response({})],
    ['resp_', response({})],
    ['resp_some-id', backgroundView()],
    ['resp_some-id', missing],
  ])('is not found under another id, for another client, or of another endpoint: %s', async (id, job) => {
    const gone = new RelayError('not_found', 'no such response');
    const primary = new FakePrimary({ job, jobAnswer, responsePiece: gone, deleteResponse: gone });
    for (const handler of [
      getResponse(primary.asPrimary),
      cancelResponse(primary.asPrimary),
      deleteResponse(primary.asPrimary),
    ]) {
      await using server = await serve(handler, id);
      expect(await server.get()).toMatchObject({
        status: 404,
        body: { error: 'not_found', message: 'no such response' },
      });
    }
  });

  it('is cancelled, and shown in its new state', async () => {
    const primary = new FakePrimary({
      job: response({ status: 'running' }),
      cancelJob: response({ status: 'cancelled' }),
    });
    await using server = await serve(cancelResponse(primary.asPrimary));
    expect((await server.get()).body.status).toBe('cancelled');
  });

  it('is deleted in any state', async () => {
    const fates = ['cancelled', null];
    const primary = new FakePrimary({
      job: response({ status: 'running' }),
      deleteJob: () => ({ status: fates.shift() }),
    });
    await using server = await serve(deleteResponse(primary.asPrimary));
    expect((await server.get()).body).toEqual({ id: 'resp_some-id', object: 'response', deleted: true });
    expect(primary.calls.map(({ name }) => name)).toEqual(['job', 'deleteJob', 'deleteJob']);
  });
});

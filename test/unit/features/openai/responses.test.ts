import { cancelResponse, deleteResponse, getResponse } from '../../../../src/features/openai/responses.js';
import type { JobView } from '../../../../src/shared/background.js';
import { systemClock } from '../../../../src/shared/clock.js';
import { RelayError } from '../../../../src/shared/errors.js';
import type { AsyncHandler } from '../../../../src/worker/http/exchange.js';
import { answerOf } from '../../../support/doors/express-server.js';
import { answerInPieces, backgroundView } from '../../../support/jobs/background-view.js';
import { FakePrimary } from '../../../support/jobs/fake-primary.js';
import { jobDone } from '../../../support/jobs/job-records.js';

const form = { route: '/v1/responses', model: 'eliza', tool: null, isStructured: false } as const;
const missing = new RelayError('not_found', 'no such job');
const jobAnswer = answerInPieces('Hello', jobDone({ estimate: { inputTokens: 3, outputTokens: 2 } }));

function partsWith(primary: FakePrimary) {
  return { primary: primary.asPrimary, clock: systemClock, closing: new AbortController().signal };
}

function response(differences: Partial<JobView>): JobView {
  return backgroundView({ form, ...differences });
}

/** Sends a request to a handler at the path of this response. */
function ask(handler: AsyncHandler, id = 'resp_some-id') {
  return answerOf([(req, res, next) => handler(Object.assign(req, { params: { response_id: id } }), res, next)]);
}

function shown(job: JobView) {
  return ask(getResponse(partsWith(new FakePrimary({ job, jobAnswer }))));
}

describe('A background response', () => {
  it.each([
    ['queued', 'queued'],
    ['running', 'in_progress'],
    ['cancelled', 'cancelled'],
  ] as const)('that is %s is shown as %s, with the time as a number', async (status, expected) => {
    const { body } = await shown(response({ status }));
    expect(body).toMatchObject({ id: 'resp_some-id', object: 'response', status: expected, created_at: 1, output: [] });
    expect([body.background, body.error, body.model]).toEqual([true, null, 'eliza']);
  });

  it('that has failed shows the reason', async () => {
    const failure = { code: 'timeout', message: 'too long' } as const;
    expect((await shown(response({ status: 'failed', failure }))).body).toMatchObject({
      status: 'failed',
      error: failure,
    });
  });

  it('that is complete shows its answer', async () => {
    const { body } = await shown(response({}));
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
    const { asPrimary } = primary;
    for (const handler of [getResponse(partsWith(primary)), cancelResponse(asPrimary), deleteResponse(asPrimary)]) {
      const body = { error: 'not_found', message: 'no such response' };
      expect(await ask(handler, id)).toMatchObject({ status: 404, body });
    }
  });

  it('is cancelled, and shown in its new state', async () => {
    const [job, cancelJob] = [response({ status: 'running' }), response({ status: 'cancelled' })];
    const primary = new FakePrimary({ job, cancelJob });
    expect((await ask(cancelResponse(primary.asPrimary))).body.status).toBe('cancelled');
  });

  it('is deleted in any state', async () => {
    const fates = ['cancelled', null];
    const deleteJob = () => ({ status: fates.shift() });
    const primary = new FakePrimary({ job: response({ status: 'running' }), deleteJob });
    expect((await ask(deleteResponse(primary.asPrimary))).body).toEqual({
      id: 'resp_some-id',
      object: 'response',
      deleted: true,
    });
    expect(primary.calls.map(({ name }) => name)).toEqual(['job', 'deleteJob', 'deleteJob']);
  });
});

import { acceptJob } from '../../../../src/features/background/answers.js';
import { RelayError } from '../../../../src/shared/errors.js';
import type { WorkerPart } from '../../../../src/worker/features/feature.js';
import { RequestHooks } from '../../../../src/worker/features/request-hooks.js';
import type { AsyncHandler } from '../../../../src/worker/http/exchange.js';
import { answerOf } from '../../../support/doors/express-server.js';
import { noFeatures } from '../../../support/doors/no-features.js';
import { FakePrimary } from '../../../support/jobs/fake-primary.js';
import { documentInspector } from '../../../support/jobs/inspected-documents.js';

const order = { operation: 'ask', text: 'Hi', isEffortNeeded: true, stream: false } as const;
const form = { route: '/ask', model: null, tool: null } as const;

function partsOf(primary: FakePrimary) {
  return { primary: primary.asPrimary, features: noFeatures, documents: documentInspector() };
}

describe('A background job', () => {
  it('is passed to the primary, and its caller receives its address', async () => {
    const primary = new FakePrimary({ accept: { id: 'some-id', createdAt: 0, isDurable: false } });
    const accept: AsyncHandler = (_req, res) =>
      acceptJob(partsOf(primary), res, order, form, ({ id }) => ({ beside: id }));
    const { status, headers, body } = await answerOf([accept], ['X-Request-Id: mine']);
    expect([status, headers.location, headers['preference-applied']]).toEqual([202, '/jobs/some-id', 'respond-async']);
    expect(body).toEqual({
      beside: 'some-id',
      job_id: 'some-id',
      status: 'queued',
      created_at: '1970-01-01T00:00:00.000Z',
      durable: false,
      request_id: 'mine',
    });
    const job = expect.objectContaining({ text: 'Hi', requestId: 'mine', isStreamed: true });
    expect(primary.calls).toEqual([{ name: 'accept', request: { job, form: { ...form, isStructured: false } } }]);
  });

  it('has in its form what features add', async () => {
    const primary = new FakePrimary({ accept: { id: 'some-id', createdAt: 0, isDurable: false } });
    const part: WorkerPart = { routes: [], admitJob: ({ fields, isBackground }) => ({ ...fields, isBackground }) };
    const features = new RequestHooks([part], {});
    const job = { ...order, featureFields: { note: 'a' } };
    const accept: AsyncHandler = (_req, res) => acceptJob({ ...partsOf(primary), features }, res, job, form);
    expect((await answerOf([accept])).status).toBe(202);
    const added = { note: 'a', isBackground: true };
    expect(primary.calls).toMatchObject([{ request: { form: { ...form, isStructured: false, ...added } } }]);
  });

  it('is not accepted if the primary refuses it', async () => {
    const refusal = new RelayError('concurrency_limited', 'too many', { retryAfterSeconds: 30 });
    const primary = new FakePrimary({ accept: refusal });
    const accept: AsyncHandler = (_req, res) => acceptJob(partsOf(primary), res, order, form);
    const { status, headers, body } = await answerOf([accept]);
    expect([status, headers['retry-after'], body.error]).toEqual([429, '30', 'concurrency_limited']);
    expect([headers.location, headers['preference-applied']]).toEqual([undefined, undefined]);
  });
});

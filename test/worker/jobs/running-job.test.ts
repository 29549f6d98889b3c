import { systemClock } from '../../../src/shared/clock.js';
import { RelayError } from '../../../src/shared/errors.js';
import type { JobEvent } from '../../../src/shared/job.js';
import type { AsyncHandler } from '../../../src/worker/http/exchange.js';
import { sendBody } from '../../../src/worker/http/send-json.js';
import type { JobOrder } from '../../../src/worker/jobs/job-order.js';
import { type RunningJob, runJob } from '../../../src/worker/jobs/running-job.js';
import { serveWith } from '../../support/express-server.js';
import { FakePrimary } from '../../support/fake-primary.js';
import { jobDone, jobFailed } from '../../support/job-records.js';

const order: JobOrder = { operation: 'ask', text: 'hello', isEffortNeeded: true, stream: false };
const admitted: JobEvent = { type: 'job-admitted', session: 'live', ignoresEffort: false };
const started: JobEvent = { type: 'job-start', queueMs: 0 };

/** Serves one job with these events to `answer`. */
async function serve(
  events: readonly JobEvent[],
  answer: (job: RunningJob, send: (body: object) => void) => Promise<void>,
  differences: Partial<JobOrder> = {},
) {
  async function* run() {
    yield* events;
  }
  const primary = new FakePrimary({ schemaFault: { fault: null } }, run);
  const parts = { primary: primary.asPrimary, spill: { file: async () => null }, clock: systemClock };
  const handler: AsyncHandler = (_req, res) =>
    runJob(parts, res, { ...order, ...differences }, (job) => answer(job, (body) => void res.json(body)));
  return serveWith([handler]);
}

describe('a running job', () => {
  it('tells what its admission told, and whether the model was asked already', async () => {
    const seen: unknown[] = [];
    await using server = await serve([admitted, started, jobDone()], async (job, send) => {
      seen.push(job.admission, job.hasStarted);
      await job.collect(async ({ type }) => void seen.push([type, job.hasStarted]));
      send({ session: job.admission?.session });
    });
    expect((await server.get()).body).toEqual({ session: 'live' });
    expect(seen).toEqual([null, false, ['job-admitted', false], ['job-start', true], ['job-end', true]]);
  });

  it('was not started where it fails in the queue, so it may be sent again', async () => {
    const seen: boolean[] = [];
    await using server = await serve([admitted, jobFailed('queue_timeout')], async (job) => {
      await job.collect().catch((error: RelayError) => {
        seen.push(job.hasStarted);
        throw error;
      });
    });
    expect((await server.get()).status).toBe(504);
    expect(seen).toEqual([false]);
  });

  it('gives the value of structured output beside its text', async () => {
    const text = '{"name":"Ada \\"x\\""}';
    const deltas = [text.slice(0, 5), text.slice(5)].map((piece) => ({ type: 'text-delta' as const, text: piece }));
    const schema = { path: 'schema', value: { type: 'object' } };
    const handler = (parts: { primary: FakePrimary }): AsyncHandler => {
      const own = { primary: parts.primary.asPrimary, spill: { file: async () => null }, clock: systemClock };
      return (_req, res) =>
        runJob(own, res, { ...order, schema }, async (job) => {
          const body = job.written(await job.collect(), ({ text, value }) => JSON.stringify({ text, value }));
          await sendBody(res, body, job.signal);
        });
    };
    async function* run() {
      yield* [admitted, started, ...deltas, jobDone()];
    }
    await using server = await serveWith([
      handler({ primary: new FakePrimary({ schemaFault: { fault: null } }, run) }),
    ]);
    expect((await server.get()).body).toEqual({ text, value: { name: 'Ada "x"' } });
  });

  it('is no job for the log where it was refused', async () => {
    async function* run(): AsyncGenerator<JobEvent> {
      yield* [];
      throw new RelayError('concurrency_limited', 'the queue is full', { retryAfterSeconds: 7 });
    }
    const parts = {
      primary: new FakePrimary({}, run).asPrimary,
      spill: { file: async () => null },
      clock: systemClock,
    };
    await using server = await serveWith([
      (_req, res) => runJob(parts, res, order, async (job) => void (await job.collect())),
    ]);
    const { status, headers } = await server.get();
    expect([status, headers['retry-after']]).toEqual([429, '7']);
    const record = server.log.entries.find(({ event }) => event === 'http_request_completed');
    expect(record?.fields).not.toHaveProperty('outcome');
  });
});

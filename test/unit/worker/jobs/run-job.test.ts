import { systemClock } from '../../../../src/shared/clock.js';
import { RelayError } from '../../../../src/shared/errors.js';
import type { JobEvent } from '../../../../src/shared/job.js';
import type { AnswerFormat, CompletedAnswer, WrittenEvent } from '../../../../src/worker/jobs/answer-format.js';
import { ownRequest, type RequestedJob } from '../../../../src/worker/jobs/job-request.js';
import { answerWithJob, JobReport } from '../../../../src/worker/jobs/run-job.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { serveWith } from '../../../support/doors/express-server.js';
import { noFeatures } from '../../../support/doors/no-features.js';
import { FakePrimary } from '../../../support/jobs/fake-primary.js';
import { documentInspector } from '../../../support/jobs/inspected-documents.js';
import { jobDone, jobFailed } from '../../../support/jobs/job-records.js';

const job: RequestedJob = { operation: 'ask', text: 'hello', model: 'asked', isEffortNeeded: true, stream: false };
const admitted: JobEvent = { type: 'job-admitted', session: 'live', ignoresEffort: false, model: 'routed' };
const started: JobEvent = { type: 'job-start', queueMs: 0 };
const said: JobEvent[] = ['Hel', 'lo'].map((text) => ({ type: 'text-delta', text }));

function lineOf(event: WrittenEvent): string {
  if (event.type === 'call-start') return `call ${event.name}\n`;
  if (event.type === 'thought-end') return `thought ended ${event.signature}\n`;
  const names = { 'text-delta': 'delta', 'call-delta': 'input', 'thought-delta': 'thought' } as const;
  return 'text' in event ? `${names[event.type]} ${event.text}\n` : '';
}

/** Format that writes a line for each call. */
const lines: AnswerFormat = {
  isForSdks: true,
  body: ({ text, value, model, ending }: CompletedAnswer) => ({ text, value, model, ending }),
  stream: ({ model }) => ({
    formatBeginning: () => `begin ${model}\n`,
    formatPosition: (position) => `queued ${position}\n`,
    formatStart: (queueMs) => `started ${queueMs}\n`,
    formatEvent: lineOf,
    formatEnd: ({ text, ending }) => `end ${text} ${ending}\n`,
    formatFailure: ({ code }) => `failure ${code}\n`,
  }),
};

/** Serves a job with these events; an error among them is thrown. */
async function serve(
  events: readonly (JobEvent | Error)[],
  differences: Partial<RequestedJob> = {},
  format: AnswerFormat = lines,
) {
  async function* run(): AsyncGenerator<JobEvent> {
    for (const event of events) {
      if (event instanceof Error) throw event;
      yield event;
    }
  }
  const primary = new FakePrimary({ schemaFault: { fault: null } }, run);
  const spill = { file: async () => null };
  const parts = {
    primary: primary.asPrimary,
    features: noFeatures,
    documents: documentInspector(),
    spill,
    clock: systemClock,
  };
  return serveWith([(_req, res) => answerWithJob(parts, res, ownRequest({ ...job, ...differences }), format)]);
}

async function textOf(events: readonly (JobEvent | Error)[]): Promise<string> {
  await using server = await serve(events, { stream: true });
  return (await fetch(`http://127.0.0.1:${server.port}/`)).text();
}

describe('The answer to a job', () => {
  it('is written in its format, with the model of its admission', async () => {
    await using server = await serve([admitted, started, ...said, jobDone()]);
    const { headers, body } = await server.get();
    expect(body).toEqual({ text: 'Hello', model: 'routed', ending: 'whole' });
    expect(headers['x-session']).toBe('live');
  });

  it('is streamed with the model that answers, if its CLI reports it in time', async () => {
    const model: JobEvent = { type: 'job-model', model: 'answering' };
    expect(await textOf([admitted, started, model, ...said, jobDone()])).toMatch(/^started 0\nbegin answering\ndelta/);
    const late = [admitted, started, jobDone({ model: 'answering' })];
    expect(await textOf(late)).toMatch(/^started 0\nbegin answering\nend/);
  });

  it('is a refusal by the model for SDKs, and an error otherwise', async () => {
    const failure = { code: 'cli_error', reason: 'refused', message: 'no' } as const;
    const events = [admitted, started, ...said, jobFailed('cli_error', { failure })];
    await using sdks = await serve(events, {}, { ...lines, showsRefusals: true });
    expect(await sdks.get()).toMatchObject({ status: 200, body: { text: 'Hello', ending: 'refusal' } });
    await using own = await serve(events, {}, { ...lines, isForSdks: false });
    expect(await own.get()).toMatchObject({ status: 500, body: { error: 'cli_error', reason: 'refused' } });
  });

  it.each<[string, JobEvent[], boolean, string | undefined]>([
    ['was not asked', [admitted, jobFailed('queue_timeout')], true, undefined],
    ['was asked', [admitted, started, jobFailed('timeout')], true, 'false'],
    ['was asked, and no SDK reads it', [admitted, started, jobFailed('timeout')], false, undefined],
  ])('forbids retries once the model is paid: it %s', async (_, events, isForSdks, expected) => {
    await using server = await serve(events, {}, { ...lines, isForSdks });
    const { status, headers } = await server.get();
    expect([status, headers['x-should-retry']]).toEqual([504, expected]);
  });

  it('has the value of a structured answer next to its text', async () => {
    const text = '{"name":"Ada \\"x\\""}';
    const deltas = [text.slice(0, 5), text.slice(5)].map((piece) => ({ type: 'text-delta' as const, text: piece }));
    const schema = { path: 'schema', value: { type: 'object' } };
    await using server = await serve([admitted, started, ...deltas, jobDone()], { schema });
    expect((await server.get()).body).toMatchObject({ text, value: { name: 'Ada "x"' } });
  });

  it('is not logged as a job if it was refused', async () => {
    const full = new RelayError('concurrency_limited', 'the queue is full', { retryAfterSeconds: 7 });
    await using server = await serve([full]);
    const { status, headers } = await server.get();
    expect([status, headers['retry-after']]).toEqual([429, '7']);
    const record = server.log.entries.find(({ event }) => event === 'http_request_completed');
    expect(record?.fields).not.toHaveProperty('outcome');
  });
});

describe('The report of a job', () => {
  const figures = { queueMs: 5, executionMs: 70, processorMs: 60, peakMemoryBytes: 4096 };

  it('counts a job without any event as not admitted', async () => {
    const clock = new FakeClock();
    const report = new JobReport(clock);
    await clock.advance(30);
    expect(report.wasAdmitted).toBe(false);
    expect(report.figures()).toMatchObject({ outcome: 'cancelled', queueMs: 30, executionMs: 0 });
  });

  it('counts a waiting job as cancelled in the queue, for the time since it arrived', async () => {
    const clock = new FakeClock();
    const report = new JobReport(clock);
    report.follow({ type: 'job-queued', position: 1, reason: 'slot' });
    await clock.advance(30);
    expect(report.wasAdmitted).toBe(true);
    const unknown = { processorMs: null, peakMemoryBytes: null };
    expect(report.figures()).toEqual({ outcome: 'cancelled', queueMs: 30, executionMs: 0, ...unknown });
  });

  it('counts a running job as cancelled, for the time since its start', async () => {
    const clock = new FakeClock();
    const report = new JobReport(clock);
    await clock.advance(30);
    report.follow({ type: 'job-start', queueMs: 25 });
    await clock.advance(40);
    report.follow({ type: 'text-delta', text: 'hello' });
    expect(report.figures()).toMatchObject({ outcome: 'cancelled', queueMs: 25, executionMs: 40 });
  });

  it('contains the figures from the end of the job', async () => {
    const clock = new FakeClock();
    const report = new JobReport(clock);
    report.follow({ type: 'job-start', queueMs: 5 });
    report.follow(jobFailed('timeout', figures));
    await clock.advance(1000);
    expect(report.wasAdmitted).toBe(true);
    expect(report.figures()).toMatchObject({ outcome: 'timeout', ...figures });
  });
});

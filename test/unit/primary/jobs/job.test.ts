import { plainLaunch } from '../../../../src/primary/cli/contract/adapter.js';
import type { Route } from '../../../../src/primary/cli/route.js';
import { Job } from '../../../../src/primary/jobs/job.js';
import { doneEnd, failedEnd } from '../../../../src/primary/jobs/job-end.js';
import { JobStream } from '../../../../src/primary/jobs/job-stream.js';
import { WaitingRoom } from '../../../../src/primary/jobs/waiting-room.js';
import { cancelled, cliError, RelayError } from '../../../../src/shared/errors.js';
import { loginOf } from '../../../support/agents/logins.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { jobRequest } from '../../../support/jobs/job-records.js';

function open(caller = new AbortController(), label: string | null = null) {
  const clock = new FakeClock();
  const room = new WaitingRoom({ maxActive: 1, maxWaiting: 0, maxWaitingBytes: 0, cliLimits: {} }, clock);
  const enter = () => room.admit({ client: 'key a', bytes: 2, cli: loginOf(''), lane: '', heldBy: () => null });
  const prepared = { launch: plainLaunch(null), turn: null, chain: null };
  const events = new JobStream(true);
  const choice = { route: { label } as Route, passed: [], left: [] };
  const parts = { choice, request: jobRequest(), events, background: null, trace: null };
  const job = new Job(parts, caller.signal, clock);
  job.admit(1, prepared, enter);
  return { clock, caller, events, job };
}

const gone = cancelled('gone');
const shutdown = new RelayError('shutting_down', 'the service ends');
const usage = { inputTokens: 1, outputTokens: 2, costUsd: null, cacheReadTokens: null, cacheWriteTokens: null };

describe('The signal of a job', () => {
  it('is aborted when the job has waited too long, or when the execution has, counted from its start', async () => {
    const [waiting, running] = [open(), open()];
    const late = new RelayError('queue_timeout', 'late');
    for (const { job } of [waiting, running]) job.limitTime(15_000, () => late);
    await running.clock.advance(14_000);
    running.job.startJob(2000);
    const model = 'the model took longer than 2000 ms (MODEL_API_TIMEOUT)';
    for (const [{ clock, job }, ms, code, message] of [
      [waiting, 15_000, 'queue_timeout', 'late'],
      [running, 2000, 'timeout', model],
    ] as const) {
      await clock.advance(ms - 1);
      expect(job.signal.aborted).toBe(false);
      await clock.advance(1);
      expect(job.signal.reason).toMatchObject({ code, message });
    }
  });
});

describe('The times of a job', () => {
  it('are the wait for a slot, then the execution', async () => {
    const { clock, job } = open();
    await clock.advance(120.4);
    expect([job.queueMs, job.executionMs, job.hasStarted]).toEqual([120, 0, false]);
    job.startJob(10_000);
    await clock.advance(30.2);
    expect([job.queueMs, job.executionMs, job.hasStarted]).toEqual([120, 30, true]);
  });

  it('are part of its start event', async () => {
    const { clock, events, job } = open();
    await clock.advance(120);
    job.startJob(10_000);
    expect(await events.next()).toEqual({ value: { type: 'job-start', queueMs: 120 }, done: false });
  });
});

describe('The end of a job', () => {
  it('hides the messages that the job got while it ran in the stderr of its failure', () => {
    const { job } = open();
    job.addedTexts.push('The password is swordfish, by the way.');
    const stderr = 'panic at: The password is swordfish, by the way.';
    const { failure } = failedEnd(job, cliError('crashed', 'it crashed', { stderr }));
    expect(failure.stderr).not.toContain('swordfish');
  });

  it('includes the usage of its processes, whatever its outcome', () => {
    const { job } = open();
    job.addUsage(null);
    job.addUsage({ processorMs: 100, peakMemoryBytes: null });
    job.addUsage({ processorMs: 20, peakMemoryBytes: 4096 });
    const said = { text: null, model: null, usage, estimate: null, stopSequence: null };
    const end = { type: 'turn-end', isWaiting: false, isCut: false, ...said } as const;
    expect(doneEnd(job, end, null)).toMatchObject({ processorMs: 120, peakMemoryBytes: 4096 });
    expect(failedEnd(job, gone)).toMatchObject({ processorMs: 120, peakMemoryBytes: 4096 });
  });

  it.each([
    [new RelayError('timeout', 'm'), 'timeout', 'timeout'],
    [new RelayError('queue_timeout', 'm'), 'queue_timeout', 'queue_timeout'],
    [cliError('quota', 'm'), 'cli_error', 'cli_error'],
    [new RelayError('spawn_error', 'm'), 'spawn_error', 'spawn_error'],
    [shutdown, 'shutting_down', 'shutting_down'],
    [gone, 'cancelled', 'cancelled'],
    [new TypeError('secret'), 'internal_error', 'internal_error'],
    ['secret', 'internal_error', 'internal_error'],
    [new RelayError('not_found', 'm'), 'internal_error', 'not_found'],
  ])('is derived from the thrown error: %p becomes %s', (thrown, outcome, code) => {
    const end = failedEnd(open().job, thrown);
    expect(end).toMatchObject({ type: 'job-end', outcome, failure: { code }, queueMs: 0, executionMs: 0 });
    expect(JSON.stringify(end)).not.toContain('secret');
  });

  it('includes the reason that the CLI reports and the time until a retry', () => {
    const { failure } = failedEnd(open().job, cliError('quota', 'used up'));
    expect(failure).toMatchObject({ code: 'cli_error', message: 'used up', reason: 'quota' });
    expect(failedEnd(open().job, new RelayError('shutting_down', '', { retryAfterSeconds: 5 })).failure).toMatchObject({
      retryAfterSeconds: 5,
    });
  });
});

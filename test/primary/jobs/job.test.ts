import { Job } from '../../../src/primary/jobs/job.js';
import { Cancelled, cliError, RelayError } from '../../../src/shared/errors.js';
import { FakeClock } from '../../support/fake-clock.js';

function open(caller = new AbortController()) {
  const clock = new FakeClock();
  return { clock, caller, job: new Job(clock, caller.signal) };
}

const gone = new Cancelled('gone');
const shutdown = new RelayError('shutting_down', 'good night');
const usage = { inputTokens: 1, outputTokens: 2, costUsd: null };

describe("a job's signal", () => {
  it('is aborted by the caller, with its reason', () => {
    const { caller, job } = open();
    expect(job.signal.aborted).toBe(false);
    caller.abort(gone);
    expect(job.signal.reason).toBe(gone);
  });

  it('is aborted from the start for a caller who has gone already', () => {
    const caller = new AbortController();
    caller.abort(gone);
    expect(open(caller).job.signal.reason).toBe(gone);
  });

  it('is aborted when it has waited for too long', async () => {
    const { clock, job } = open();
    job.limitWaiting(15_000);
    await clock.advance(14_999);
    expect(job.signal.aborted).toBe(false);
    await clock.advance(1);
    expect(job.signal.reason).toMatchObject({ code: 'queue_timeout', message: 'waited 15000 ms for a slot' });
  });

  it('is aborted when execution has taken too long, counted from its start', async () => {
    const { clock, job } = open();
    job.limitWaiting(15_000);
    await clock.advance(14_000);
    job.start(2000);
    await clock.advance(1999);
    expect(job.signal.aborted).toBe(false);
    await clock.advance(1);
    expect(job.signal.reason).toMatchObject({ code: 'timeout' });
  });

  it('keeps its first reason', async () => {
    const { clock, caller, job } = open();
    job.start(1000);
    job.cut(shutdown);
    caller.abort(gone);
    await clock.advance(5000);
    expect(job.signal.reason).toBe(shutdown);
  });

  it('is left alone once the job is over, and nothing is left running', async () => {
    const { clock, caller, job } = open();
    job.start(1000);
    job[Symbol.dispose]();
    caller.abort(gone);
    await clock.advance(5000);
    expect(job.signal.aborted).toBe(false);
    expect(clock.pending).toBe(0);
  });
});

describe("a job's times", () => {
  it('are the wait for a slot, then the execution', async () => {
    const { clock, job } = open();
    await clock.advance(120.4);
    expect([job.queueMs, job.executionMs]).toEqual([120, 0]);
    job.start(10_000);
    await clock.advance(30.2);
    expect([job.queueMs, job.executionMs]).toEqual([120, 30]);
  });
});

describe("a job's end", () => {
  it('is ok with what the CLI said, its model before the requested one', async () => {
    const { clock, job } = open();
    await clock.advance(5);
    job.start(10_000);
    await clock.advance(7);
    const end = { type: 'turn-end', text: 'hi', usage } as const;
    const done = { type: 'job-end', outcome: 'ok', text: 'hi', usage, conversation: null, queueMs: 5, executionMs: 7 };
    expect(job.done({ ...end, model: 'full-name' }, 'short', null)).toEqual({ ...done, model: 'full-name' });
    expect(job.done({ ...end, model: null }, 'short', null)).toEqual({ ...done, model: 'short' });
    expect(job.done({ ...end, model: null }, null, null)).toEqual({ ...done, model: null });
  });

  it.each([
    [new RelayError('timeout', 'm'), 'timeout', 'timeout'],
    [new RelayError('queue_timeout', 'm'), 'queue_timeout', 'queue_timeout'],
    [cliError('quota', 'm'), 'cli_error', 'cli_error'],
    [new RelayError('spawn_error', 'm'), 'spawn_error', 'spawn_error'],
    [shutdown, 'shutting_down', 'shutting_down'],
    [gone, 'cancelled', 'internal_error'],
    [new TypeError('secret'), 'internal_error', 'internal_error'],
    ['secret', 'internal_error', 'internal_error'],
    [new RelayError('not_found', 'm'), 'internal_error', 'not_found'],
  ])('is told by what was thrown: %p is %s', (thrown, outcome, code) => {
    const end = open().job.failed(thrown);
    expect(end).toMatchObject({ type: 'job-end', outcome, failure: { code }, queueMs: 0, executionMs: 0 });
    expect(JSON.stringify(end)).not.toContain('secret');
  });

  it('carries details and the time to wait', () => {
    const { failure } = open().job.failed(cliError('quota', 'used up'));
    expect(failure).toMatchObject({ message: 'used up', details: [{ path: 'reason', message: 'quota' }] });
    expect(open().job.failed(new RelayError('shutting_down', '', { retryAfterSeconds: 5 })).failure).toMatchObject({
      retryAfterSeconds: 5,
    });
  });
});

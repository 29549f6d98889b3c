import { cliError } from '../../../../src/shared/errors.js';
import { all, answers, barrier, clientGone, endOf, JobHarness, throws } from '../../../support/jobs/job-harness.js';

const minute = 60_000;

/** Creates jobs of which the first fails because the quota is used up; the others would succeed. */
function exhausted(options: object = {}) {
  const harness: JobHarness = new JobHarness({
    script: (sink, signal) => {
      if (harness.processes.length > 1) return answers(sink, signal);
      const quota = { scope: 'account', resetsAt: harness.clock.now() + minute } as const;
      return throws(cliError('quota', 'the model CLI reports: a limit', { quota }))(sink, signal);
    },
    ...options,
  });
  return harness;
}

const told = { outcome: 'cli_error', failure: { code: 'cli_error', reason: 'quota', retryAfterSeconds: 60 } };

describe('While the breaker is open', () => {
  it('waiting jobs end immediately, each with one end, and no process starts for them', async () => {
    const harness = exhausted({ maxWaiting: 50 });
    const ends = (await Promise.all(Array.from({ length: 50 }, () => all(harness.run())))).map(endOf);
    expect(ends).toMatchObject(ends.map(() => told));
    expect(harness.launches).toHaveLength(1);
    expect(harness.observer.ends.filter(({ hadSlot }) => hadSlot)).toHaveLength(1);
    expect(harness.observer.ends).toHaveLength(50);
    await harness.expectTidy();
  });

  it('a turn that waits for its conversation ends, too, and running jobs continue', async () => {
    const wait = barrier();
    const harness = exhausted({
      maxActive: 2,
      script: async (sink: Parameters<typeof answers>[0], signal: AbortSignal) => {
        const turns = harness.processes.length;
        if (turns === 2) await wait.wait();
        if (turns < 3) return answers(sink, signal);
        return throws(cliError('quota', 'a limit', { quota: { scope: 'account', resetsAt: null } }))(sink, signal);
      },
    });
    const id = await harness.turn();
    const running = all(harness.run({ operation: 'chat', conversationId: id }));
    const parked = all(harness.run({ operation: 'chat', conversationId: id }));
    await harness.clock.advance(50);
    expect(endOf(await all(harness.run()))).toMatchObject({ outcome: 'cli_error' });
    expect(endOf(await parked)).toMatchObject({ outcome: 'cli_error', failure: { reason: 'quota' } });
    wait.open();
    expect(endOf(await running)).toMatchObject({ outcome: 'ok' });
    await harness.expectTidy();
  });

  it('a new job ends immediately, even if there is neither a slot nor a queue place', async () => {
    const harness = exhausted({ maxActive: 1, maxWaiting: 0 });
    await all(harness.run());
    const events = await all(harness.run({ isStreamed: true, operation: 'chat', conversationId: 'unknown' }));
    expect(events).toHaveLength(1);
    expect(endOf(events)).toMatchObject({ ...told, queueMs: 0, executionMs: 0 });
    expect(harness.launches).toHaveLength(1);
  });

  it('one job is let through after the reset time, and then all', async () => {
    const harness = exhausted();
    await all(harness.run());
    await harness.clock.advance(minute);
    const probe = all(harness.run());
    expect(endOf(await all(harness.run()))).toMatchObject({ failure: { reason: 'quota', retryAfterSeconds: 5 } });
    expect(endOf(await probe)).toMatchObject({ outcome: 'ok' });
    // The harness does not observe the first text, so the circuit closes at the end of the job.
    expect(endOf(await all(harness.run()))).toMatchObject({ outcome: 'ok' });
    await harness.expectTidy();
  });

  it('the next job becomes the trial if the first is refused for another reason or its caller disconnects', async () => {
    const harness = exhausted();
    await all(harness.run());
    await harness.clock.advance(minute);
    expect(() => harness.run({ operation: 'chat', conversationId: 'unknown' })).toThrow('no such conversation');
    const caller = new AbortController();
    const probe = all(harness.run({}, caller.signal));
    caller.abort(clientGone);
    expect(endOf(await probe)).toMatchObject({ outcome: 'cancelled' });
    expect(endOf(await all(harness.run()))).toMatchObject({ outcome: 'ok' });
  });
});

import { cliError } from '../../../../src/shared/errors.js';
import {
  all,
  answers,
  barrier,
  endOf,
  hangs,
  type JobHarness,
  type JobOptions,
  jobHarness,
  type Script,
  throws,
} from '../../../support/jobs/job-harness.js';

const minute = 60_000;

/** Creates jobs of which the first fails because the quota is used up; the others would succeed. */
function exhausted(options: JobOptions = {}) {
  const usedUp: Script = () => {
    const quota = { scope: 'account', resetsAt: harness.clock.now() + minute } as const;
    throw cliError('quota', 'the model CLI reports: a limit', { quota });
  };
  const harness: JobHarness = jobHarness({ script: [usedUp], ...options });
  return harness;
}

const told = { outcome: 'cli_error', failure: { code: 'cli_error', reason: 'quota', retryAfterSeconds: 60 } };

it('A waiting job whose client has lost its account ends with 503 and a time', async () => {
  const harness = jobHarness({ maxActive: 1, script: [hangs, answers] });
  const running = harness.start();
  const parked = harness.finish();
  harness.runner.moves.moveWaiting(() => false);
  const failure = { code: 'shutting_down', retryAfterSeconds: 1 };
  expect(await parked).toMatchObject({ outcome: 'shutting_down', failure });
  running.leave();
  await running.end();
  await harness.expectTidy();
});

describe('While the breaker is open', () => {
  it('waiting jobs end immediately, each with one end, and no process starts for them', async () => {
    const harness = exhausted({ maxWaiting: 50 });
    const ends = await Promise.all(Array.from({ length: 50 }, () => harness.finish()));
    expect(ends).toMatchObject(ends.map(() => told));
    expect(harness.launches).toHaveLength(1);
    expect(harness.ends.filter(({ hadSlot }) => hadSlot)).toHaveLength(1);
    expect(harness.ends).toHaveLength(50);
    await harness.expectTidy();
  });

  it('a turn that waits for its conversation ends, too, and running jobs continue', async () => {
    const { wait, open } = barrier();
    const waits: Script = (...turn) => wait().then(() => answers(...turn));
    const quota = { scope: 'account', resetsAt: null } as const;
    const usedUp = throws(cliError('quota', 'a limit', { quota }));
    const harness = jobHarness({ maxActive: 2, script: [answers, waits, usedUp] });
    const id = await harness.turn();
    const [running, parked] = [1, 2].map(() => harness.finish({ operation: 'chat', conversationId: id }));
    await harness.clock.advance(50);
    expect(await harness.finish()).toMatchObject({ outcome: 'cli_error' });
    expect(await parked).toMatchObject({ outcome: 'cli_error', failure: { reason: 'quota' } });
    open();
    expect(await running).toMatchObject({ outcome: 'ok' });
    await harness.expectTidy();
  });

  it('a new job ends immediately, even if there is neither a slot nor a queue place', async () => {
    const harness = exhausted({ maxActive: 1, maxWaiting: 0 });
    await harness.finish();
    const events = await all(harness.run({ isStreamed: true, operation: 'chat', conversationId: 'unknown' }));
    expect(events).toHaveLength(1);
    expect(endOf(events)).toMatchObject({ ...told, queueMs: 0, executionMs: 0 });
    expect(harness.launches).toHaveLength(1);
  });

  it('the next job becomes the trial if the first is refused for another reason or its caller disconnects', async () => {
    const harness = exhausted();
    await harness.finish();
    await harness.clock.advance(minute);
    expect(() => harness.run({ operation: 'chat', conversationId: 'unknown' })).toThrow('no such conversation');
    const probe = harness.start();
    probe.leave();
    expect(await probe.end()).toMatchObject({ outcome: 'cancelled' });
    expect(await harness.finish()).toMatchObject({ outcome: 'ok' });
  });
});

import { StepLimit } from '../../../../../src/primary/cli/process/step-limit.js';
import type { Clock } from '../../../../../src/shared/clock.js';
import { FakeClock } from '../../../../support/basics/fake-clock.js';

const late = (message: string) => ({ type: 'turn-failed', reason: 'other', message }) as const;
const step = (name: string) => ({ name, limitMs: 100, late: late(name) });

function limit() {
  const clock = new FakeClock();
  const exceeded: unknown[] = [];
  return { clock, exceeded, limit: new StepLimit(clock, (event) => exceeded.push(event)) };
}

function clockOf(clock: FakeClock): Clock {
  return {
    now: () => clock.now(),
    monotonicMs: () => clock.monotonicMs(),
    after: (ms, action) => clock.after(ms, action),
    every: (ms, action) => clock.every(ms, action),
  };
}

describe('The limit of a step', () => {
  it('starts anew if this process stood still when it passed: the output of the program is not read yet', async () => {
    const { clock, exceeded } = limit();
    let aheadMs = 0;
    const slow = { ...clockOf(clock), monotonicMs: () => clock.monotonicMs() + aheadMs };
    const steps = new StepLimit(slow, (event) => exceeded.push(event));
    steps.set(step('first'));
    aheadMs = 1001;
    await clock.advance(100);
    expect(exceeded).toEqual([]);
    await clock.advance(100);
    expect(exceeded).toEqual([late('first')]);
  });
});

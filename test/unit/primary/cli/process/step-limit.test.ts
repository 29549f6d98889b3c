import { StepLimit } from '../../../../../src/primary/cli/process/step-limit.js';
import { FakeClock } from '../../../../support/basics/fake-clock.js';

const late = (message: string) => ({ type: 'turn-failed', reason: 'other', message }) as const;
const step = (name: string) => ({ name, limitMs: 100, late: late(name) });

function limit() {
  const clock = new FakeClock();
  const exceeded: unknown[] = [];
  return { clock, exceeded, limit: new StepLimit(clock, (event) => exceeded.push(event)) };
}

describe('The limit of a step', () => {
  it('is exceeded once if the same step takes too long', async () => {
    const { clock, exceeded, limit: steps } = limit();
    steps.set(step('first'));
    await clock.advance(60);
    steps.set(step('first'));
    await clock.advance(40);
    expect(exceeded).toEqual([late('first')]);
    await clock.advance(1000);
    expect(exceeded).toHaveLength(1);
  });

  it('starts anew with each step, and ends when there is none', async () => {
    const { clock, exceeded, limit: steps } = limit();
    steps.set(step('first'));
    await clock.advance(60);
    steps.set(step('second'));
    await clock.advance(60);
    expect(exceeded).toEqual([]);
    steps.set(null);
    expect(clock.pending).toBe(0);
    steps.set(step('second'));
    steps[Symbol.dispose]();
    expect(clock.pending).toBe(0);
  });
});

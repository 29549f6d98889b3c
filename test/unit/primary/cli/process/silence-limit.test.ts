import { SilenceLimit } from '../../../../../src/primary/cli/process/open-turn.js';
import { FakeClock } from '../../../../support/basics/fake-clock.js';

function limitOf(limitMs: number) {
  const clock = new FakeClock();
  const exceeded: string[] = [];
  const limit = new SilenceLimit(limitMs, clock, ({ code, message }) => exceeded.push(`${code}: ${message}`));
  return { clock, limit, exceeded };
}

const first = 'timeout: the model was silent for 30 ms before its first output (MODEL_API_STALL_TIMEOUT)';
const stalled = 'timeout: the model CLI was silent for 30 ms between two outputs (MODEL_API_STALL_TIMEOUT)';

describe('The silence limit', () => {
  it('is exceeded once when the first output does not arrive, and reports that', async () => {
    const { clock, exceeded } = limitOf(30);
    await clock.advance(29);
    expect(exceeded).toEqual([]);
    await clock.advance(1000);
    expect(exceeded).toEqual([first]);
  });

  it('is exceeded when the output stalls, counted from the last one', async () => {
    const { clock, limit, exceeded } = limitOf(30);
    for (let count = 0; count < 5; count++) {
      await clock.advance(29);
      limit.reset();
    }
    expect(exceeded).toEqual([]);
    await clock.advance(30);
    expect(exceeded).toEqual([stalled]);
  });

  it('does not run while it is paused, and starts afresh after that', async () => {
    const { clock, limit, exceeded } = limitOf(30);
    limit.reset();
    await clock.advance(29);
    limit.pause();
    await clock.advance(10_000);
    limit.reset();
    await clock.advance(29);
    expect(exceeded).toEqual([]);
    await clock.advance(1);
    expect(exceeded).toEqual([stalled]);
  });

  it('treats 0 as no limit', async () => {
    const { clock, limit, exceeded } = limitOf(0);
    expect(clock.pending).toBe(0);
    limit.reset();
    await clock.advance(10_000);
    expect([clock.pending, exceeded]).toEqual([0, []]);
  });

  it('leaves no timer behind', () => {
    const { clock, limit } = limitOf(30);
    limit.reset();
    limit[Symbol.dispose]();
    expect(clock.pending).toBe(0);
  });
});

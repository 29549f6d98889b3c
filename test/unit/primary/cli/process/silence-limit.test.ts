import { SilenceLimit } from '../../../../../src/primary/cli/process/open-turn.js';
import { FakeClock } from '../../../../support/basics/fake-clock.js';

function limitOf(limitMs: number) {
  const clock = new FakeClock();
  const exceeded: string[] = [];
  const limit = new SilenceLimit(limitMs, clock, ({ code, message }) => exceeded.push(`${code}: ${message}`));
  return { clock, limit, exceeded };
}

const stalled = 'timeout: the model CLI was silent for 30 ms between two outputs (MODEL_API_STALL_TIMEOUT)';

describe('The silence limit', () => {
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
});

import { availableParallelism } from 'node:os';
import { HostLoad } from '../../../../../src/primary/cli/pool/standby-keeper.js';
import { FakeClock } from '../../../../support/fake-clock.js';

const plenty = 8 * 1024 ** 3;

describe('the memory of a host', () => {
  it.each([
    [512 * 1024 ** 2, false],
    [512 * 1024 ** 2 + 1, true],
    [plenty, true],
  ])('is enough for a start in advance only where more than 512 MiB are free: %d', (free, isEnough) => {
    expect(new HostLoad(new FakeClock(), () => free).hasMemory).toBe(isEnough);
  });

  it('is looked at anew each time', () => {
    let free = plenty;
    const load = new HostLoad(new FakeClock(), () => free);
    expect(load.hasMemory).toBe(true);
    free = 0;
    expect(load.hasMemory).toBe(false);
  });
});

describe('the idle processors of a host', () => {
  function sampled() {
    const clock = new FakeClock();
    const load = new HostLoad(clock, () => plenty);
    return {
      idleAfter: async (ms: number) => {
        await clock.advance(ms);
        return load.idleProcessors();
      },
    };
  }

  it('are not known at the first look, and at one that comes too soon or too late after the one before', async () => {
    const { idleAfter } = sampled();
    expect(await idleAfter(0)).toBeNull();
    expect(await idleAfter(49)).toBeNull();
    expect(await idleAfter(452)).toBeNull();
  });

  it('are counted since the last look', async () => {
    const { idleAfter } = sampled();
    await idleAfter(0);
    for (const ms of [50, 100, 500]) {
      const idle = await idleAfter(ms);
      expect(idle).not.toBeNull();
      expect(idle).toBeGreaterThanOrEqual(0);
      expect(idle).toBeLessThanOrEqual(availableParallelism());
    }
  });

  it('are counted over the whole time where a look came too soon', async () => {
    const { idleAfter } = sampled();
    await idleAfter(0);
    expect(await idleAfter(30)).toBeNull();
    expect(await idleAfter(30)).not.toBeNull();
  });
});

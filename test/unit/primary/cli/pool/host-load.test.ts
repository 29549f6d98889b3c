import { availableParallelism } from 'node:os';
import { HostLoad } from '../../../../../src/primary/cli/pool/standby-keeper.js';
import { FakeClock } from '../../../../support/basics/fake-clock.js';

const plenty = 8 * 1024 ** 3;

describe('The memory of a host', () => {
  it.each([
    [512 * 1024 ** 2, false],
    [512 * 1024 ** 2 + 1, true],
    [plenty, true],
  ])('suffices for an early start only if more than 512 MiB are free: %d', (free, isEnough) => {
    expect(new HostLoad(new FakeClock(), () => free).hasMemory).toBe(isEnough);
  });

  it('is measured anew each time', () => {
    let free = plenty;
    const load = new HostLoad(new FakeClock(), () => free);
    expect(load.hasMemory).toBe(true);
    free = 0;
    expect(load.hasMemory).toBe(false);
  });
});

describe('The idle processors of a host', () => {
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

  it('are unknown at the first measurement, and if one follows too soon or too late', async () => {
    const { idleAfter } = sampled();
    expect(await idleAfter(0)).toBeNull();
    expect(await idleAfter(49)).toBeNull();
    expect(await idleAfter(452)).toBeNull();
  });

  it('are counted since the last measurement', async () => {
    const { idleAfter } = sampled();
    await idleAfter(0);
    for (const ms of [50, 100, 500]) {
      const idle = await idleAfter(ms);
      expect(idle).not.toBeNull();
      expect(idle).toBeGreaterThanOrEqual(0);
      expect(idle).toBeLessThanOrEqual(availableParallelism());
    }
  });

  it('are counted over the whole time if a measurement came too soon', async () => {
    const { idleAfter } = sampled();
    await idleAfter(0);
    expect(await idleAfter(30)).toBeNull();
    expect(await idleAfter(30)).not.toBeNull();
  });
});

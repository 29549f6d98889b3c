import { RestartPolicy } from '../../../src/primary/fleet/restart-policy.js';

function delays(...lives: readonly number[]): number[] {
  const policy = new RestartPolicy();
  return lives.map((livedMs) => policy.delayAfter(livedMs));
}

describe('the delay before a restart', () => {
  it('is 0.1 s at first, doubled at each early death, 5 s at most', () => {
    expect(delays(...Array.from({ length: 9 }, () => 0))).toEqual([100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000]);
  });

  it('begins again after a worker that lived for ten seconds', () => {
    expect(delays(0, 0, 0, 9999, 10_000, 0, 3_600_000, 0)).toEqual([100, 200, 400, 800, 100, 200, 100, 200]);
  });

  it('never grows beyond its limit, however long it goes on', () => {
    expect(delays(...Array.from({ length: 5000 }, () => 0)).at(-1)).toBe(5000);
  });
});

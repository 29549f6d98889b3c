import { RestartPolicy } from '../../../src/primary/fleet/restart-policy.js';

/** The delays after workers that had listened, or had not, one after the other. */
function delays(...hadListened: readonly boolean[]): number[] {
  const policy = new RestartPolicy();
  return hadListened.map((hasListened) => policy.delayAfter(hasListened));
}

describe('the delay before a restart', () => {
  it('is 0.1 s at first, doubled at each start in vain, 5 s at most', () => {
    expect(delays(...Array(9).fill(false))).toEqual([100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000]);
  });

  it('is none after a worker that had listened, and begins again after that', () => {
    expect(delays(true, true, false, false, true, false)).toEqual([0, 0, 100, 200, 0, 100]);
  });

  it('never grows beyond its limit, however long it goes on', () => {
    expect(delays(...Array(5000).fill(false)).at(-1)).toBe(5000);
  });
});

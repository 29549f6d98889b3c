import { leaveStrays, ways } from '../leaks/leave-strays.js';

const few = 40;
const fewStorms = 3;

describe.each(['auto', 'off'] as const)('What programs leave behind, with MODEL_API_CGROUP=%s', (cgroup) => {
  it.each(ways)('is gone when their slots are free: %s', async (way) => {
    const target = way === 'storm' ? fewStorms : few;
    const { strays } = await leaveStrays({ way, cgroup, standby: 1, callers: 4, isEnough: (runs) => runs >= target });
    // Only its cgroup identifies a process that has left its environment, its group and its parent.
    if (cgroup === 'auto' || way !== 'env-i') expect(strays).toBe(0);
  });
});

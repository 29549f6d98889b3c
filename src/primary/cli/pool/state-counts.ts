import type { CliProcess, CliState } from '../process/cli-process.js';
import { isRenewed } from './fitting.js';

/** Number of processes of a CLI in each state. */
export type StateCounts = Record<'standby' | 'renewed' | 'live' | 'tools' | 'busy' | 'stopping', number>;

const countedAs: Readonly<Partial<Record<CliState['name'], keyof StateCounts>>> = {
  standby: 'standby',
  idle: 'live',
  waiting_for_tools: 'tools',
  busy: 'busy',
  stopping: 'stopping',
};

/** Counts the processes by state. Those that are starting, or have ended, count nowhere. */
export function countStates(processes: readonly Pick<CliProcess, 'state'>[]): StateCounts {
  const counts = { standby: 0, renewed: 0, live: 0, tools: 0, busy: 0, stopping: 0 };
  for (const { state } of processes) {
    const counted = isRenewed({ state }) ? 'renewed' : countedAs[state.name];
    if (counted !== undefined) counts[counted]++;
  }
  return counts;
}

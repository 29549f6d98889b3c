import { type Clock, delay } from '../clock.js';
import type { Fits, ProcessScanner } from './process-scanner.js';

const pauseMs = 10;
/**
 * Scans in a row that found nothing but were not settled, after which nothing is taken to be there. On a busy host few
 * scans are ever settled, so it takes a find to be suspicious.
 */
const maxUnsettledScans = { beforeFind: 2, afterFind: 5 };

export interface Swept {
  /** How many processes were killed. */
  readonly killed: number;
  /** Those that were still there at the time limit. */
  readonly left: readonly number[];
}

/** Kills every process whose cookie fits, again and again until none is left, because a process may fork while it is looked for. */
export async function sweep(scanner: ProcessScanner, fits: Fits, clock: Clock, limitMs: number): Promise<Swept> {
  const until = clock.monotonicMs() + limitMs;
  const killed = new Set<number>();
  let unsettledScans = 0;
  while (unsettledScans < (killed.size === 0 ? maxUnsettledScans.beforeFind : maxUnsettledScans.afterFind)) {
    const { pids, settled } = await scanner.find(fits, (pid) => kill(pid) && killed.add(pid));
    if (pids.length === 0 && settled) break;
    unsettledScans = pids.length === 0 ? unsettledScans + 1 : 0;
    if (pids.length > 0 && clock.monotonicMs() > until) return { killed: killed.size, left: pids };
    if (pids.length > 0) await delay(clock, pauseMs);
  }
  return { killed: killed.size, left: [] };
}

function kill(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL');
  } catch {
    return false; // gone already, or not ours to kill: the next scan tells
  }
}

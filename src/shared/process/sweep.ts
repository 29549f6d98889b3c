import { type Clock, delay } from '../clock.js';
import { killNow } from './proc.js';
import type { CookieFilter, ProcessScanner } from './scanner.js';

const pauseMs = 5;
/**
 * Scans in a row that find nothing but see strangers vanish, after which nothing is taken to be there. On a busy host
 * strangers vanish in nearly every scan; once something was found, more care is due.
 */
const maxScansWithVanished = { beforeFind: 3, afterFind: 6 };

export interface Swept {
  /** How many processes were killed. */
  readonly killed: number;
  /** Those that were still there at the time limit. */
  readonly left: readonly number[];
}

/**
 * Kills every process whose cookie fits, until none is left: a process may fork while it is looked for. A process whose
 * owner is unclear is looked at again until it is clear.
 */
export async function sweep(
  scanner: ProcessScanner,
  fits: CookieFilter,
  clock: Clock,
  limitMs: number,
): Promise<Swept> {
  const until = clock.monotonicMs() + limitMs;
  const killed = new Set<number>();
  for (let scans = 1; ; scans++) {
    const { pids, hasVanished, hasUnclear } = await scanner.find(fits, (pid) => killNow(pid) && killed.add(pid));
    if (pids.length > 0) scans = 0;
    const needed = maxScansWithVanished[killed.size === 0 ? 'beforeFind' : 'afterFind'];
    const isClear = pids.length === 0 && !hasUnclear;
    if (isClear && (!hasVanished || scans >= needed)) return { killed: killed.size, left: [] };
    if (clock.monotonicMs() >= until) return { killed: killed.size, left: pids };
    await delay(clock, pauseMs);
  }
}

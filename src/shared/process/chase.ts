import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { inLine, withResolvers } from '../async.js';
import type { Clock } from '../clock.js';

/** Cookies of the processes to kill, and the time limit in milliseconds. */
export interface Chase {
  readonly cookies: readonly string[];
  readonly limitMs: number;
}

export interface Chased {
  readonly killed: readonly number[];
  /** Whether the last passes found no process; false at the time limit. */
  readonly isQuiet: boolean;
}

const threadProgram = join(__dirname, 'chase-thread.js');

/**
 * Kills all processes with one of these cookies, also those that move to another process several times a second. A pass
 * over /proc blocks its thread, and therefore takes about a millisecond even on a busy host, while each asynchronous
 * read may wait until the process has moved on. Runs in a thread of its own, because reading the environment of a
 * process may wait for a disk. Never rejects: `isQuiet` is false if the thread fails or exceeds the limit.
 */
export async function chase(
  cookies: readonly string[],
  limitMs: number,
  clock: Clock,
  program = threadProgram,
): Promise<Chased> {
  const failed: Chased = { killed: [], isQuiet: false };
  try {
    const data: Chase = { cookies, limitMs };
    const worker = new Worker(program, { workerData: data, env: {}, execArgv: [] });
    const { promise, resolve } = withResolvers<Chased>();
    worker.once('message', resolve);
    worker.once('error', () => resolve(failed));
    const stopTimer = clock.after(limitMs + 1000, () => resolve(failed));
    const chased = await promise;
    stopTimer();
    void worker.terminate();
    return chased;
  } catch {
    return failed; // the system has no thread left
  }
}

/**
 * Returns a function that works like `chase`, but runs one thread at a time, however many trees end at once. The time
 * that a chase waits counts towards its limit.
 */
export function chasesInLine(
  chaseOne = chase,
): (cookies: readonly string[], limitMs: number, clock: Clock) => Promise<Chased> {
  const oneByOne = inLine();
  return (cookies, limitMs, clock) => {
    const untilMs = clock.monotonicMs() + limitMs;
    return oneByOne(() => chaseOne(cookies, Math.max(0, untilMs - clock.monotonicMs()), clock));
  };
}

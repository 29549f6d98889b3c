import { readdirSync, readFileSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../clock.js';
import type { Chase, Chased } from './chase.js';
import { cookieIn, killNow } from './proc.js';

/** Number of passes in a row without a matching process after which the chase ends. */
const quietPasses = 20;
/**
 * Number of quiet passes in a row if a process vanished before it could be read, so that it may have been one of ours.
 */
const quietPassesWithVanished = 150;
/** Number of passes in which a process without a cookie is read. Its cookie is invisible during an exec. */
const maxReads = 5;
const pauseMs = 2;

type PassResult = 'found' | 'vanished' | 'quiet';

function runChase({ cookies, limitMs }: Chase): Chased {
  const untilMs = systemClock.monotonicMs() + limitMs;
  const chaser = new Chaser(new Set(cookies));
  for (let quiet = 0; quiet < quietPassesWithVanished; ) {
    if (systemClock.monotonicMs() >= untilMs) return { killed: [...chaser.killed], isQuiet: false };
    const result = chaser.pass();
    if (result === 'found') quiet = 0;
    else quiet += result === 'vanished' ? 1 : quietPassesWithVanished / quietPasses;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pauseMs);
  }
  return { killed: [...chaser.killed], isQuiet: true };
}

/** Reads the processes of the host pass by pass, and kills those with one of the cookies. */
class Chaser {
  readonly killed = new Set<number>();
  readonly #cookies: ReadonlySet<string>;
  /** Number of reads of each living process. */
  readonly #reads = new Map<number, number>();

  constructor(cookies: ReadonlySet<string>) {
    this.#cookies = cookies;
  }

  /** Reads each process that is not known yet. */
  pass(): PassResult {
    let result: PassResult = 'quiet';
    for (const pid of this.#unread()) {
      const cookie = readCookie(pid);
      if (cookie === 'vanished' && result === 'quiet') result = 'vanished';
      if (cookie === null || !this.#cookies.has(cookie)) continue;
      result = 'found';
      if (killNow(pid)) this.killed.add(pid);
    }
    return result;
  }

  /** Returns the processes that were read fewer than `maxReads` times, and counts them as read once more. */
  #unread(): number[] {
    const present = new Set(readdirSync('/proc').map(Number).filter(Number.isInteger));
    for (const pid of this.#reads.keys()) if (!present.has(pid)) this.#reads.delete(pid);
    const pids = [...present].filter((pid) => (this.#reads.get(pid) ?? 0) < maxReads);
    for (const pid of pids) this.#reads.set(pid, (this.#reads.get(pid) ?? 0) + 1);
    return pids;
  }
}

/** Returns the cookie of a process; null if it has none or belongs to another user. */
function readCookie(pid: number): string | 'vanished' | null {
  try {
    const environ = readFileSync(`/proc/${pid}/environ`);
    return environ.length === 0 ? 'vanished' : cookieIn(environ);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES' ? null : 'vanished';
  }
}

parentPort?.postMessage(runChase(workerData));

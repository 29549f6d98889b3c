import { appendFileSync, readFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';

/**
 * Preload (`--require`) that watches the event loops of the primary and the workers. At each SIGPWR, appends the
 * longest stall since the last one to a file, as a line of JSON.
 */

export interface Stall {
  readonly role: 'primary' | 'worker';
  readonly pid: number;
  /** Longest time that the event loop was blocked, milliseconds. */
  readonly wallMs: number;
  /** Longest processor time of the main thread in one block, milliseconds; on a busy machine, use this. */
  readonly processorMs: number;
}

const periodMs = 2;
const file = process.env.BENCH_STALL_FILE;
const program = process.argv[1] ?? '';
const role = basename(dirname(program));

if (file !== undefined && basename(program) === 'main.js' && (role === 'primary' || role === 'worker')) {
  const processorMs = () =>
    Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
  let longest = { wallMs: 0, processorMs: 0 };
  let last = { wallMs: performance.now(), processorMs: processorMs() };
  const look = () => {
    const now = { wallMs: performance.now(), processorMs: processorMs() };
    longest = {
      wallMs: Math.max(longest.wallMs, now.wallMs - last.wallMs - periodMs),
      processorMs: Math.max(longest.processorMs, now.processorMs - last.processorMs),
    };
    last = now;
  };
  setInterval(look, periodMs).unref();
  process.on('SIGPWR', () => {
    look();
    appendFileSync(file, `${JSON.stringify({ role, pid: process.pid, ...longest } satisfies Stall)}\n`);
    longest = { wallMs: 0, processorMs: 0 };
  });
}

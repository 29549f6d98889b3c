import { appendFileSync, readFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';

/**
 * Loaded into the service with `--require`: watches the event loops of the primary and of the workers. At every SIGPWR it
 * appends the longest stall since the last one to a file, one JSON object a line, and begins anew.
 */

export interface Stall {
  readonly role: 'primary' | 'worker';
  /** The longest time in which the loop did nothing else, milliseconds. */
  readonly wallMs: number;
  /** The most processor time of the main thread in such a time: on a busy machine, this is what counts. */
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
    appendFileSync(file, `${JSON.stringify({ role, ...longest } satisfies Stall)}\n`);
    longest = { wallMs: 0, processorMs: 0 };
  });
}

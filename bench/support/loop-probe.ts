import { appendFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';

/**
 * Loaded into the service with `--require`: watches the primary's event loop, and no other process's.
 * At every SIGUSR2 it appends what it saw since the last one to a file, one JSON object a line, and begins anew.
 */

export interface LoopDelay {
  /** The longest time between two turns of the loop's timer, 99 of 100 times, milliseconds; the period is in it. */
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** How often the loop is looked at, milliseconds: the least that can be measured. */
const periodMs = 1;
const file = process.env.BENCH_LOOP_PROBE_FILE;

if (file !== undefined && process.argv[1] === process.env.BENCH_LOOP_PROBE_PROGRAM) {
  const seen = monitorEventLoopDelay({ resolution: periodMs });
  seen.enable();
  process.on('SIGUSR2', () => {
    const delay: LoopDelay = { p99Ms: seen.percentile(99) / 1e6, maxMs: seen.max / 1e6 };
    appendFileSync(file, `${JSON.stringify(delay)}\n`);
    seen.reset();
  });
}

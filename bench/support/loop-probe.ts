import { appendFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';

/**
 * Module for `--require` that watches the event loop of the primary only. At every SIGUSR2, appends the measurements
 * since the last signal to a file as one line of JSON.
 */

export interface LoopDelay {
  /** 99th percentile of the time between two turns of the loop's timer, in milliseconds, including its period. */
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** Period of the timer in milliseconds, the least delay that can be measured. */
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

import { appendFileSync, readdirSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * Module for `--require` in the service's processes. At every SIGUSR2, collects garbage and appends the remaining
 * resources to a file as one line of JSON.
 */

export interface SelfReport {
  readonly pid: number;
  readonly heapBytes: number;
  /** Memory of buffers and other data outside the heap. */
  readonly externalBytes: number;
  readonly rssBytes: number;
  readonly fileDescriptors: number;
  /** Number of timers, sockets and pipes that keep the event loop alive, without file reads in progress. */
  readonly resources: number;
}

const file = process.env.BENCH_SELF_PROBE_FILE;
const programs = (process.env.BENCH_SELF_PROBE_PROGRAMS ?? '').split(':');

if (file !== undefined && programs.includes(process.argv[1] ?? '')) {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  process.on('SIGUSR2', () => {
    for (let round = 0; round < 3; round++) collect();
    const { heapUsed: heapBytes, external: externalBytes, rss: rssBytes } = process.memoryUsage();
    const resources = process.getActiveResourcesInfo().filter((kind) => !kind.startsWith('FSReq')).length;
    const fileDescriptors = readdirSync('/proc/self/fd').length;
    const report: SelfReport = { pid: process.pid, heapBytes, externalBytes, rssBytes, fileDescriptors, resources };
    appendFileSync(file, `${JSON.stringify(report)}\n`);
  });
}

import { appendFileSync, readdirSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * Loaded into the service's processes with `--require`. At every SIGUSR2 it collects garbage, as nothing in the service
 * ever does, and appends what is left to a file, one JSON object a line.
 */

export interface SelfReport {
  readonly pid: number;
  readonly heapBytes: number;
  /** Buffers and what else lies outside the heap. */
  readonly externalBytes: number;
  readonly rssBytes: number;
  readonly fileDescriptors: number;
  /** Timers, sockets and pipes that keep the loop alive; a file being read at this moment is none of them. */
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

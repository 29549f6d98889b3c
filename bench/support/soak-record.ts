import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { Exposition } from '../../test/support/documents/exposition.js';
import type { HealthProbe } from './health-probe.js';
import type { ObservedService } from './observed-service.js';
import { quantile } from './statistics.js';

/** State of the service at one moment of a soak. */
export interface SoakRecord {
  readonly minutes: number;
  readonly jobsEnded: number;
  readonly jobsOpen: number;
  /** Heap of the primary after a full collection, the least of a few samples. */
  readonly heapMb: number;
  /** Heap of the primary in GET /metrics. */
  readonly scrapedHeapMb: number;
  readonly rssMb: number;
  readonly fileDescriptors: number;
  readonly processes: number;
  readonly zombies: number;
  readonly healthP50Ms: number;
  readonly healthP99Ms: number;
  readonly workerRestarts: number;
}

export async function recordOf(observed: ObservedService, probe: HealthProbe, minutes: number): Promise<SoakRecord> {
  const { service } = observed;
  const latencies = probe.take();
  const scrape = await scrapeOf(service.url);
  const { heapBytes, rssBytes, fileDescriptors } = await leastOf(observed);
  return {
    minutes: rounded(minutes),
    jobsEnded: scrape.sum('jobs_total'),
    jobsOpen: scrape.sum('jobs_active') + scrape.sum('jobs_queued'),
    heapMb: rounded(heapBytes / 1024 ** 2),
    scrapedHeapMb: rounded(heapOfPrimary(scrape) / 1024 ** 2),
    rssMb: rounded(rssBytes / 1024 ** 2),
    fileDescriptors,
    processes: (await service.jobProcesses()).length,
    zombies: await zombiesOf(service.pid),
    healthP50Ms: rounded(latencies.length === 0 ? 0 : quantile(latencies, 0.5)),
    healthP99Ms: rounded(latencies.length === 0 ? 0 : quantile(latencies, 0.99)),
    workerRestarts: scrape.sum('worker_restarts_total'),
  };
}

export function csvOf(records: readonly SoakRecord[]): string {
  const names = Object.keys(records[0] ?? {}) as (keyof SoakRecord)[];
  return [names, ...records.map((record) => names.map((name) => record[name]))]
    .map((row) => `${row.join(',')}\n`)
    .join('');
}

const samples = 4;

/** Returns the least of several samples, which excludes the memory of jobs at single moments. */
async function leastOf(observed: ObservedService): Promise<Awaited<ReturnType<ObservedService['primary']>>> {
  let least = await observed.primary();
  for (let count = 1; count < samples; count++) {
    await sleep(250);
    const next = await observed.primary();
    if (next.heapBytes < least.heapBytes) least = next;
  }
  return least;
}

/** Reads the metrics. Retries, because the worker that answers may be killed. */
async function scrapeOf(url: string): Promise<Exposition> {
  for (let tries = 0; ; tries++) {
    try {
      return new Exposition(await (await fetch(`${url}/metrics`)).text());
    } catch (error) {
      if (tries === 20) throw error;
    }
  }
}

function heapOfPrimary(scrape: Exposition): number {
  return scrape.sum('nodejs_heap_size_used_bytes', { process: 'primary' });
}

/** Returns the number of dead children of the service that have not been reaped. */
async function zombiesOf(servicePid: number): Promise<number> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const stats = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')));
  return stats.filter((stat) => new RegExp(`\\) Z ${servicePid} `).test(stat)).length;
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}

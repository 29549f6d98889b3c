import { readFile } from 'node:fs/promises';
import { KeepAliveClient } from '../../support/clients/keep-alive.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import { allPids, killIfAlive, readOfProcess } from '../../support/processes/processes.js';
import { type Service, script, startWithProgram } from '../../support/service/service.js';

/** Ways in which a program of `leaves-strays.pl` leaves processes behind. */
export const ways = ['setsid', 'env-i', 'double-fork', 'no-leader', 'storm', 'breeder'] as const;
export type Way = (typeof ways)[number];

export interface LeakRun {
  readonly runs: number;
  readonly strays: number;
}

export interface LeakOrder {
  readonly way: Way;
  readonly cgroup: 'auto' | 'off';
  /** Number of programs on standby. */
  readonly standby: 0 | 1;
  readonly callers: number;
  /** Whether the run may end, by the number of answered jobs. */
  readonly isEnough: (runs: number) => boolean;
}

/** One of this many callers disconnects before its answer. */
const leaveEvery = 5;
const maxPatienceMs = 20;

/** Makes programs leave stray processes for a while. Counts the strays that remain once the service is idle. */
export async function leaveStrays({ way, cgroup, standby, callers, isEnough }: LeakOrder): Promise<LeakRun> {
  const mark = `300.${process.pid}${Math.floor(performance.now())}`; // duration for `sleep`, unique in its arguments
  const service = await startWithProgram(script('leaves-strays.pl', way, mark), {
    MODEL_API_CGROUP: cgroup,
    MODEL_API_STANDBY: String(standby),
    MODEL_API_MAX_CONCURRENT: String(callers),
  });
  try {
    const runs = await askUntil(service, callers, isEnough);
    await untilJobs(service, 0, 0, 30_000);
    return { runs, strays: (await straysOf(mark, service.pid)).length };
  } finally {
    await service.stop();
    for (const pid of await straysOf(mark, service.pid)) killIfAlive(pid);
  }
}

async function askUntil(service: Service, callers: number, isEnough: (runs: number) => boolean): Promise<number> {
  using client = new KeepAliveClient(service.port, callers);
  let runs = 0;
  const call = async () => {
    while (!isEnough(runs)) {
      runs++;
      if (runs % leaveEvery === 0) {
        await client.post('/ask', { prompt: 'hello' }, AbortSignal.timeout(runs % maxPatienceMs)).catch(() => {});
        continue;
      }
      const { status, body } = await client.post('/ask', { prompt: 'hello' });
      if (status !== 200 || body.response !== 'hello')
        throw new Error(`not answered: ${status} ${JSON.stringify(body)}`);
    }
  };
  await Promise.all(Array.from({ length: callers }, call));
  return runs;
}

/**
 * Finds stray processes by their arguments: they may have left everything else. A child of the primary is on standby.
 */
async function straysOf(mark: string, primary: number): Promise<number[]> {
  const parentOf = async (pid: number) => {
    const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
    return Number(/^PPid:\s+(\d+)/m.exec(status)?.[1] ?? primary);
  };
  const marked = allPids().filter((pid) => readOfProcess(pid, 'cmdline').includes(mark));
  const parents = await Promise.all(marked.map(parentOf));
  return marked.filter((_, index) => parents[index] !== primary);
}

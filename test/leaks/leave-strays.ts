import { readdir, readFile } from 'node:fs/promises';
import { untilJobs } from '../support/jobs.js';
import { KeepAliveClient } from '../support/keep-alive.js';
import { killIfAlive } from '../support/processes.js';
import { type Service, script, startWithProgram } from '../support/service.js';

/** How a program of `leaves-strays.pl` leaves processes behind. */
export const ways = ['setsid', 'env-i', 'double-fork', 'storm', 'breeder'] as const;
export type Way = (typeof ways)[number];

export interface LeakRun {
  readonly runs: number;
  readonly strays: number;
}

export interface LeakOrder {
  readonly way: Way;
  readonly cgroup: 'auto' | 'off';
  readonly callers: number;
  /** Whether there has been enough, after so many answered jobs. */
  readonly isEnough: (runs: number) => boolean;
}

/** Has programs leave strays for a while, and counts those that are left once the service says that it is idle. */
export async function leaveStrays({ way, cgroup, callers, isEnough }: LeakOrder): Promise<LeakRun> {
  const mark = `300.${process.pid}${Math.floor(performance.now())}`; // what a sleep takes for its time
  const service = await startWithProgram(script('leaves-strays.pl', way, mark), {
    MODEL_API_CGROUP: cgroup,
    MODEL_API_MAX_CONCURRENT: String(callers),
  });
  try {
    const runs = await askUntil(service, callers, isEnough);
    await untilJobs(service, 0, 0, 30_000);
    return { runs, strays: (await straysOf(mark)).length };
  } finally {
    await service.stop();
    for (const pid of await straysOf(mark)) killIfAlive(pid);
  }
}

async function askUntil(service: Service, callers: number, isEnough: (runs: number) => boolean): Promise<number> {
  using client = new KeepAliveClient(service.port, callers);
  let runs = 0;
  const call = async () => {
    while (!isEnough(runs)) {
      runs++;
      const { status, body } = await client.post('/ask', { prompt: 'hello' });
      if (status !== 200 || body.response !== 'hello')
        throw new Error(`not answered: ${status} ${JSON.stringify(body)}`);
    }
  };
  await Promise.all(Array.from({ length: callers }, call));
  return runs;
}

/** Found by their arguments alone: they have shed whatever else a process can shed. */
async function straysOf(mark: string): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
  return pids.filter((_, index) => lines[index]?.includes(mark)).map(Number);
}

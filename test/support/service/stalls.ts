import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { temporaryFolder } from '../basics/folder.js';
import { until } from '../basics/until.js';
import { isAlive, workersOf } from '../processes/processes.js';
import { type Service, startService } from './service.js';
import type { Stall } from './stall-probe.js';

/** Longest stalls of both event loops. */
export type Stalls = Readonly<Record<Stall['role'], Stall>>;

/** Service with watched event loops. */
export interface WatchedService extends AsyncDisposable {
  readonly service: Service;
  /** Returns the longest stalls of the primary and of any worker since the last call. */
  takeStalls(): Promise<Stalls>;
}

/** Starts a service with one worker, unless the environment has another number. */
export async function startWatched(env: Readonly<Record<string, string>> = {}): Promise<WatchedService> {
  const folder = await temporaryFolder();
  const file = join(folder.path, 'stalls');
  const probe = { NODE_OPTIONS: `--require "${join(__dirname, 'stall-probe.js')}"`, BENCH_STALL_FILE: file };
  const limits = { MODEL_API_WORKERS: '1', MODEL_API_RATE_LIMIT_MAX_REQUESTS: '0' };
  const service = await startService({ env: { ...limits, ...probe, ...env } });
  return {
    service,
    takeStalls: () => takeStalls(service, file),
    [Symbol.asyncDispose]: async () => {
      await service.stop();
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** Time in which a blocked process may answer. Afterwards, the service kills it. */
const patienceMs = 60_000;

/** Returns the longest stalls. Stalls of processes that were killed are missing. */
async function takeStalls(service: Service, file: string): Promise<Stalls> {
  const before = (await stallsIn(file)).length;
  await sleep(20); // maximum age of a probe's last sample
  const pids = [service.pid, ...(await workersOf(service.pid))];
  for (const pid of pids) process.kill(pid, 'SIGPWR');
  const all = await until(
    async () => {
      const now = (await stallsIn(file)).slice(before);
      return pids.every((pid) => !isAlive(pid) || now.some((stall) => stall.pid === pid)) ? now : null;
    },
    'the probes to answer',
    patienceMs,
  );
  return { worker: longestOf('worker', all), primary: longestOf('primary', all) };
}

function longestOf(role: Stall['role'], all: readonly Stall[]): Stall {
  const stalls = all.filter((stall) => stall.role === role);
  const longest = (time: 'wallMs' | 'processorMs') => Math.max(0, ...stalls.map((stall) => stall[time]));
  return { role, pid: stalls[0]?.pid ?? 0, wallMs: longest('wallMs'), processorMs: longest('processorMs') };
}

async function stallsIn(file: string): Promise<Stall[]> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Stall);
}

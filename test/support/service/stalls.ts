import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { temporaryFolder } from '../basics/folder.js';
import { until } from '../basics/until.js';
import { type Service, startService } from './service.js';
import type { Stall } from './stall-probe.js';

/** Longest stalls of both event loops. */
export type Stalls = Readonly<Record<Stall['role'], Stall>>;

/** Service with one worker and watched event loops. */
export interface WatchedService extends AsyncDisposable {
  readonly service: Service;
  /** Returns the longest stalls of primary and worker since the last call. */
  takeStalls(): Promise<Stalls>;
}

export async function startWatched(): Promise<WatchedService> {
  const folder = await temporaryFolder();
  const file = join(folder.path, 'stalls');
  const probe = { NODE_OPTIONS: `--require "${join(__dirname, 'stall-probe.js')}"`, BENCH_STALL_FILE: file };
  const limits = { MODEL_API_WORKERS: '1', MODEL_API_RATE_LIMIT_MAX_REQUESTS: '0' };
  const service = await startService({ env: { ...limits, ...probe } });
  return {
    service,
    takeStalls: () => takeStalls(service, file),
    [Symbol.asyncDispose]: async () => {
      await service.stop();
      await folder[Symbol.asyncDispose]();
    },
  };
}

async function takeStalls(service: Service, file: string): Promise<Stalls> {
  const before = (await stallsIn(file)).length;
  await sleep(20); // maximum age of a probe's last sample
  for (const pid of [service.pid, ...(await service.workers())]) process.kill(pid, 'SIGPWR');
  const all = await until(async () => {
    const now = await stallsIn(file);
    return now.length >= before + 2 ? now.slice(before) : null;
  }, 'the probes to answer');
  const of = (role: Stall['role']) => all.find((stall) => stall.role === role) as Stall;
  return { worker: of('worker'), primary: of('primary') };
}

async function stallsIn(file: string): Promise<Stall[]> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Stall);
}

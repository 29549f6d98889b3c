import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { systemClock } from '../src/shared/clock.js';
import { until } from '../test/support/basics/until.js';
import { type RedisServer, startRedis } from '../test/support/stores/redis-server.js';
import { openJobs } from './support/jobs-host.js';
import { quantile } from './support/statistics.js';

/**
 * Usage: node dist/bench/shared-jobs.js [jobs]. Hosts accept background jobs in one Redis, and are killed at times.
 * Then three hosts run the jobs, and are killed and replaced while Redis is killed and restarted. No job may be lost or
 * started twice.
 */

const hostCount = 3;
const killEveryMs = 2500;
const limitMs = 600_000;
/** Script that finds the oldest job in the queue of BullMQ by reading the whole queue. */
const oldestInQueue = `
local oldest = math.huge
for _, id in ipairs(redis.call('ZRANGE', KEYS[1] .. 'prioritized', 0, -1)) do
  oldest = math.min(oldest, tonumber(redis.call('HGET', KEYS[1] .. id, 'timestamp')))
end
return tostring(oldest)`;

interface Report {
  readonly id: string;
  readonly ms: number;
}

class Host {
  readonly #process: ChildProcess;

  constructor(args: readonly string[], onReport: (report: Report) => void) {
    this.#process = fork(join(__dirname, 'support', 'jobs-host.js'), args, { stdio: 'ignore' });
    this.#process.on('message', (report) => onReport(report as Report));
  }

  async kill(): Promise<void> {
    const exited = once(this.#process, 'close');
    this.#process.kill('SIGKILL');
    await exited;
  }
}

/** Accepts jobs. Resolves with the milliseconds until each was accepted, by ID. */
async function acceptJobs(url: string, count: number): Promise<Map<string, number>> {
  const accepted = new Map<string, number>();
  for (let kills = 0; accepted.size < count; kills++) {
    const share = (count / 5) * (kills + 1);
    const host = new Host(['accepts', url, `h${kills}`], ({ id, ms }) => accepted.set(id, ms));
    await until(() => accepted.size >= Math.min(share, count), 'jobs to be accepted', limitMs);
    await host.kill();
  }
  return accepted;
}

async function timed<T>(action: () => Promise<T>): Promise<string> {
  const begunMs = performance.now();
  await action();
  return `${(performance.now() - begunMs).toFixed(1)} ms`;
}

/** Runs the jobs. Resolves with the number of starts of each. */
async function runJobs(redis: RedisServer): Promise<Map<string, number>> {
  const starts = new Map<string, number>();
  const start = () => new Host(['runs', redis.url], ({ id }) => starts.set(id, (starts.get(id) ?? 0) + 1));
  const hosts = Array.from({ length: hostCount }, start);
  const open = async () => {
    const waiting = Number(await redis.ask('ZCARD', 'prompt-relay:jobs:waiting').catch(() => 1));
    return waiting + Number(await redis.ask('HLEN', 'prompt-relay:jobs:open').catch(() => 1));
  };
  const deadlineMs = performance.now() + limitMs;
  for (let round = 1; (await open()) > 0; round++) {
    if (performance.now() > deadlineMs) throw new Error(`${await open()} are still open`);
    await new Promise((resolve) => setTimeout(resolve, killEveryMs));
    if (round <= 6) {
      await hosts.shift()?.kill();
      hosts.push(start());
    }
    if (round === 2 || round === 5) {
      await redis.end('SIGKILL');
      await new Promise((resolve) => setTimeout(resolve, 1500));
      await redis.start();
    }
  }
  await Promise.all(hosts.map((host) => host.kill()));
  return starts;
}

async function main(): Promise<void> {
  const count = Number(process.argv[2] ?? 10_000);
  const write = (line: string) => process.stdout.write(`${line}\n`);
  await using redis = await startRedis('--appendonly', 'yes', '--appendfsync', 'always');
  const accepted = await acceptJobs(redis.url, count);
  const ms = [...accepted.values()];
  write(
    `${accepted.size} accepted at ${[0.5, 0.99].map((q) => `${quantile(ms, q).toFixed(1)} ms (p${100 * q})`).join(', ')}`,
  );
  const [waiting, queued] = await Promise.all(
    ['jobs:waiting', 'queue:jobs:prioritized'].map((key) => redis.ask('ZCARD', `prompt-relay:${key}`)),
  );
  write(`killed while they accept: ${waiting} wait, ${queued} are in the queue`);
  const store = await openJobs(redis.url);
  const jobs = store.jobs;
  const [last = ''] = [...accepted.keys()].slice(-1);
  write(`renewal with the search for orphans ${await timed(() => jobs.renewHost(systemClock.now()))}`);
  write(
    `renewal ${await timed(() => jobs.renewHost(systemClock.now()))}, position ${await timed(() => jobs.position(last))}`,
  );
  const asked = () => redis.ask('EVAL', oldestInQueue, '1', 'prompt-relay:queue:jobs:');
  write(`oldest of the records, in the renewal; of the queue ${await timed(asked)}`);
  write(`in the queue ${await redis.ask('ZCARD', 'prompt-relay:queue:jobs:prioritized')}`);
  await store.close();
  let starts = new Map<string, number>();
  write(`run in ${await timed(async () => (starts = await runJobs(redis)))}`);
  const all = (await redis.ask('KEYS', 'prompt-relay:job:*')) as string[];
  const statuses = new Map<string, number>();
  for (const key of all) {
    const status = String(await redis.ask('HGET', key, 'status'));
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  }
  const known = new Set(all.map((key) => key.slice('prompt-relay:job:'.length)));
  const lost = [...accepted.keys()].filter((id) => !known.has(id)).length;
  const twice = [...starts.values()].filter((times) => times > 1).length;
  write(
    `${[...statuses].map(([status, jobs]) => `${jobs} ${status}`).join(', ')}; lost ${lost}, started twice ${twice}`,
  );
  const left = (await redis.ask('KEYS', 'prompt-relay:queue:jobs:*')) as string[];
  write(`left in the queue: ${left.filter((key) => /:(h\d|wait|prioritized|delayed|active)/.test(key)).length} keys`);
  if (lost + twice > 0) process.exitCode = 1;
}

main().then(
  () => process.exit(),
  (error: unknown) => {
    process.stderr.write(`${String(error)}\n`);
    process.exit(1);
  },
);

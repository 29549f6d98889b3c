import type { RedisStore } from '../../src/features/redis/hosts.js';
import { systemClock } from '../../src/shared/clock.js';
import { openRedisAt } from '../../test/support/stores/redis-server.js';
import { acceptedJob, answerOf, endedAt } from '../../test/support/stores/shared-jobs.js';

const limits = { ttlMs: 3_600_000, maxConversations: 1000, clientShare: 250 };
const jobLimits = { maxJobs: 100_000, maxBytes: 1e9, ttlMs: 3_600_000 };
const slots = 8;
const clients = 40;

export function openJobs(url: string): Promise<RedisStore> {
  return openRedisAt(url, limits, jobLimits);
}

/** Accepts jobs until it is killed, and reports each. */
async function accept(url: string, name: string): Promise<void> {
  const { jobs } = await openJobs(url);
  const acceptAll = async (slot: number) => {
    for (let number = 0; ; number++) {
      const id = `${name}-${slot}-${number}`;
      const job = acceptedJob(id, systemClock.now());
      const begunMs = performance.now();
      await jobs.accept({ ...job, request: { ...job.request, client: `user ${number % clients}` } });
      process.send?.({ id, ms: performance.now() - begunMs });
    }
  };
  await Promise.all(Array.from({ length: slots }, (_, slot) => acceptAll(slot)));
}

/** Takes, starts and ends jobs like a host, until it is killed, and reports each start. */
async function run(url: string): Promise<void> {
  const { jobs } = await openJobs(url);
  jobs.listen({ added: () => {}, cancelled: () => {}, cancelCaller: () => null });
  systemClock.every(2000, () => void jobs.renewHost(systemClock.now()).catch(() => {}));
  await Promise.all(Array.from({ length: slots }, () => runJobs(jobs)));
}

async function runJobs(jobs: RedisStore['jobs']): Promise<never> {
  for (;;) {
    const job = await jobs.takeJob('next').catch(() => null);
    const isStarted = job !== null && (await started(jobs, job.id));
    if (isStarted) {
      process.send?.({ id: job.id, ms: 0 });
      await pause(Math.random() * 20);
      while (!(await ended(jobs, job.id))) await pause(200);
    } else {
      await pause(20);
    }
  }
}

async function started(jobs: RedisStore['jobs'], id: string): Promise<boolean> {
  try {
    return await jobs.startJob(id, systemClock.now());
  } catch {
    while (!jobs.giveBack(id, 100)) {
      await pause(200);
      const isMine = await jobs.startJob(id, systemClock.now()).catch(() => null);
      if (isMine !== null) return isMine;
    }
    return false;
  }
}

function ended(jobs: RedisStore['jobs'], id: string): Promise<boolean> {
  return jobs.endJob(id, endedAt(systemClock.now()), answerOf('done')).then(
    () => true,
    () => false,
  );
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

if (require.main === module) {
  const [role = '', url = '', name = ''] = process.argv.slice(2);
  void (role === 'accepts' ? accept(url, name) : run(url));
}

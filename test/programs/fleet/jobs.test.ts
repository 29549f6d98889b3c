import { delay, systemClock } from '../../../src/shared/clock.js';
import { CountedProgram } from '../../support/agents/counted-program.js';
import { describeWith } from '../../support/basics/needs.js';
import { until } from '../../support/basics/until.js';
import { haproxy } from '../../support/service/haproxy.js';
import { HostFleet } from '../../support/service/host-fleet.js';
import { postJson } from '../../support/service/load.js';
import type { Service } from '../../support/service/service.js';
import { type RedisServer, startRedis } from '../../support/stores/redis-server.js';

/**
 * For 10,000 jobs with a host killed every 10 s: FLEET_JOBS=10000 FLEET_KILLS=1000 FLEET_KILL_SECONDS=10 npm run
 * test:fleet -- jobs
 */
const jobCount = Number(process.env.FLEET_JOBS ?? 400);
const maxKills = Number(process.env.FLEET_KILLS ?? 2);
const betweenKillsMs = Number(process.env.FLEET_KILL_SECONDS ?? 6) * 1000;
const slots = 6;
const clients = 8;
const limitMs = 60_000 + jobCount * 200;

interface ListedJob {
  readonly job_id: string;
  readonly status: string;
}

describeWith(haproxy)('Background jobs of three hosts behind HAProxy', () => {
  let program: CountedProgram;
  let redis: RedisServer;
  let fleet: HostFleet;
  /** All services ever started, for their logs. */
  const services = new Set<Service>();

  beforeEach(async () => {
    program = await CountedProgram.make(0.05);
    redis = await startRedis('--appendonly', 'yes', '--maxmemory-policy', 'noeviction');
    const store = { MODEL_API_STORE: redis.url, MODEL_API_MAX_JOBS: String(2 * jobCount) };
    fleet = await HostFleet.start({ env: { ...program.env, ...store, MODEL_API_MAX_CONCURRENT: String(slots) } });
    for (const { service } of fleet.hosts) services.add(service);
  });
  afterEach(async () => {
    services.clear();
    await fleet[Symbol.asyncDispose]();
    await redis[Symbol.asyncDispose]();
    await program[Symbol.asyncDispose]();
  });

  async function get(path: string): Promise<Record<string, unknown>> {
    const response = await fetch(fleet.url + path);
    if (response.status !== 200) throw new Error(`${path}: ${response.status}`);
    return (await response.json()) as Record<string, unknown>;
  }

  /** Resolves with the IDs of the accepted jobs. If the host died during the request, the acceptance is unknown. */
  async function acceptAll(): Promise<string[]> {
    const ids: string[] = [];
    const took: number[] = [];
    let next = 0;
    const client = async () => {
      while (next < jobCount) {
        const prompt = `job-${next++}\n`;
        const begunMs = performance.now();
        const accepted = postJson(`${fleet.url}/ask`, { prompt }, { prefer: 'respond-async' });
        const { status, body } = await accepted.catch(() => ({ status: 0, body: {} as Record<string, unknown> }));
        took.push(performance.now() - begunMs);
        if (status === 202) ids.push(String(body.job_id));
        else await delay(systemClock, 200);
      }
    };
    await Promise.all(Array.from({ length: clients }, client));
    const p50 = took.toSorted((a, b) => a - b)[Math.floor(took.length / 2)];
    process.stdout.write(`${ids.length} of ${jobCount} accepted, p50 ${p50?.toFixed(1)} ms\n`);
    return ids;
  }

  /**
   * Kills the hosts one after the other, and starts each again. Resolves with the number of kills after `stop` is
   * aborted.
   */
  async function killUntil(stop: AbortSignal): Promise<number> {
    let kills = 0;
    while (kills < maxKills && !stop.aborted) {
      await delay(systemClock, betweenKillsMs);
      if (stop.aborted) break;
      const host = fleet.hosts[kills++ % fleet.hosts.length];
      if (host === undefined) break;
      await host.kill();
      await host.start();
      services.add(host.service);
    }
    return kills;
  }

  async function isAllDone(): Promise<boolean> {
    const open = await Promise.all(['queued', 'running'].map((status) => get(`/jobs?limit=1&status=${status}`)));
    return open.every(({ jobs }) => (jobs as ListedJob[]).length === 0);
  }

  async function statuses(): Promise<ReadonlyMap<string, string>> {
    const all = new Map<string, string>();
    for (let cursor = ''; ; ) {
      const { jobs, next_cursor } = await get(`/jobs?limit=100${cursor}`);
      for (const { job_id, status } of jobs as ListedJob[]) all.set(job_id, status);
      if (next_cursor === null) return all;
      cursor = `&cursor=${next_cursor}`;
    }
  }

  it(
    'each start at most once and end once, whichever host is killed',
    async () => {
      const done = new AbortController();
      const killing = killUntil(done.signal);
      const begunMs = performance.now();
      const ids = await acceptAll();
      if (maxKills <= 2) await killing; // in a short run, all kills happen before the jobs end
      await until(() => isAllDone().catch(() => false), 'all jobs to end', limitMs);
      const seconds = (performance.now() - begunMs) / 1000;
      done.abort();
      const kills = await killing;

      const all = await statuses();
      const failed = [...all].flatMap(([id, status]) => (status === 'failed' ? [id] : []));
      const begun = await program.begun();
      const counts = [...begun.values()];
      const ended = [...services].flatMap(({ logs }) => logs.filter(({ event }) => event === 'background_job_ended'));
      const endedOnce = new Set(ended.map(({ job_id }) => job_id));
      process.stdout.write(
        `${all.size} jobs, ${kills} kills, ${seconds.toFixed(0)} s: ${counts.filter((count) => count > 1).length} started twice, ` +
          `${failed.length} lost with their host, ${all.size - failed.length} succeeded, ${ended.length - endedOnce.size} ended twice\n`,
      );
      expect(ids.filter((id) => !all.has(id))).toEqual([]); // none is lost
      expect(new Set(all.values())).toEqual(new Set(failed.length > 0 ? ['succeeded', 'failed'] : ['succeeded']));
      expect(counts.filter((count) => count !== 1)).toEqual([]);
      expect(begun.size).toBeGreaterThanOrEqual(all.size - failed.length);
      expect(ended.length).toBe(endedOnce.size);
      expect(failed.length).toBeLessThanOrEqual(kills * slots);
      for (const id of failed) expect((await get(`/jobs/${id}`)).error).toMatchObject({ reason: 'host_lost' });
    },
    limitMs * 2,
  );
});

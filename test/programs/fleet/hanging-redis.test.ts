import { quantile } from '../../../bench/support/statistics.js';
import { describeWith } from '../../support/basics/needs.js';
import { haproxy } from '../../support/service/haproxy.js';
import { HostFleet } from '../../support/service/host-fleet.js';
import { askMany, askOnce } from '../../support/service/load.js';
import { type RedisServer, startRedis } from '../../support/stores/redis-server.js';

const hangsForMs = 20_000;
/** Time in which the hosts notice that Redis hangs. */
const noticedMs = 3000;
const clients = 2;
const maxGrowthMs = 250;
const maxLaterGrowthMs = 20;

/** Duration of one request, and when it was sent. */
interface Timed {
  readonly atMs: number;
  readonly tookMs: number;
}

/** Settings with a rate limit, so that each request reads its rate window from Redis. */
const env = {
  MODEL_API_CLI: 'command',
  MODEL_API_CLI_COMMAND: 'cat',
  MODEL_API_RATE_LIMIT_MAX_REQUESTS: '1000000',
};

describeWith(haproxy)('A Redis that hangs for 20 s', () => {
  let redis: RedisServer;
  let fleet: HostFleet;
  /** Control group without a Redis: anything else that slows this machine down slows it down, too. */
  let control: HostFleet;

  beforeAll(async () => {
    redis = await startRedis();
    fleet = await HostFleet.start({ env: { ...env, MODEL_API_STORE: redis.url } });
    control = await HostFleet.start({ env });
  });
  afterAll(async () => {
    await Promise.all([fleet[Symbol.asyncDispose](), control[Symbol.asyncDispose]()]);
    await redis[Symbol.asyncDispose]();
  });

  async function timed(url: string, into: Timed[]): Promise<void> {
    const atMs = performance.now();
    const { status, tookMs } = await askOnce(url, 'Hello');
    expect(status).toBe(200);
    into.push({ atMs, tookMs });
  }

  it('delays questions no longer than its circuit breaker takes to open, and then not at all', async () => {
    const asked: Timed[] = [];
    const ofControl: Timed[] = [];
    await Promise.all([fleet, control].map(({ url }) => askMany({ url, count: 60, clients: 4 }))); // warms up all hosts
    redis.stop();
    const stoppedMs = performance.now();
    const client = async () => {
      while (performance.now() < stoppedMs + hangsForMs) {
        await timed(fleet.url, asked);
        await timed(control.url, ofControl);
      }
    };
    await Promise.all(Array.from({ length: clients }, client)).finally(() => redis.goOn());
    const growth = (fromMs: number) => p99(asked, fromMs) - p99(ofControl, fromMs);
    const [whole, later] = [growth(stoppedMs), growth(stoppedMs + noticedMs)];
    const slowest = Math.max(...asked.map(({ tookMs }) => tookMs));
    const doubtMs = doubtOf(ofControl);
    process.stderr.write(
      `Redis hangs: p99 of /ask ${whole.toFixed(1)} ms longer, ${later.toFixed(1)} ms once it is noticed; ${asked.length} questions, the slowest ${slowest.toFixed(0)} ms; within ${doubtMs.toFixed(1)} ms\n`,
    );
    expect(whole).toBeLessThan(maxGrowthMs);
    expect(later).toBeLessThan(maxLaterGrowthMs + doubtMs);
  });

  /** Returns how far the p99 of equal groups differ by chance alone: a few milliseconds on a quiet machine. */
  function doubtOf(all: readonly Timed[]): number {
    const half = (which: number) => all.filter((_, index) => index % 2 === which);
    return Math.abs(p99(half(0), 0) - p99(half(1), 0));
  }

  function p99(all: readonly Timed[], fromMs: number): number {
    return quantile(
      all.filter(({ atMs }) => atMs >= fromMs).map(({ tookMs }) => tookMs),
      0.99,
    );
  }
});

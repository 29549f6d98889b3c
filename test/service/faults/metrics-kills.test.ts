import { until } from '../../support/basics/until.js';
import { RawConnection, request } from '../../support/clients/raw-http.js';
import { Exposition, fallen } from '../../support/documents/exposition.js';
import { type Service, startService } from '../../support/service/service.js';

const kills = 12;
/** Time limit of every scrape, also while a worker does not answer. */
const scrapeLimitMs = 1000;
/**
 * Time limit of requests. While workers restart all the time, clients wait for a processor, too. An answer that takes
 * longer is lost.
 */
const limitMs = 5000;

/** Scrapes over one connection repeatedly. Fails if a counter decreases or a scrape takes too long. */
class Scraper implements Disposable {
  readonly #connection: RawConnection;
  readonly #limitMs: number;
  /** Pid of the worker that has the connection. */
  readonly workerPid: number;
  last: Exposition;
  scrapes = 0;
  /** Number of scrapes that took longer than a scrape may while processors are idle. */
  slow = 0;

  private constructor(connection: RawConnection, workerPid: number, first: Exposition, answerLimitMs: number) {
    this.#connection = connection;
    this.#limitMs = answerLimitMs;
    this.workerPid = workerPid;
    this.last = first;
  }

  static async start(service: Service, answerLimitMs: number): Promise<Scraper> {
    const connection = await RawConnection.open(service.port);
    connection.send(request('GET /metrics', ['X-Request-Id: first-scrape']));
    const { text } = await connection.answer();
    const { pid } = await service.log('http_request_completed', ({ request_id }) => request_id === 'first-scrape');
    return new Scraper(connection, Number(pid), new Exposition(text), answerLimitMs);
  }

  async scrape(): Promise<Exposition> {
    const startedMs = performance.now();
    this.#connection.send(request('GET /metrics'));
    const { status, text } = await this.#connection.answer();
    expect(status).toBe(200);
    const tookMs = performance.now() - startedMs;
    expect(tookMs).toBeLessThan(this.#limitMs);
    if (tookMs > scrapeLimitMs) this.slow++;
    const now = new Exposition(text);
    expect(fallen(this.last.growing(), now.growing())).toEqual([]);
    this.last = now;
    this.scrapes++;
    return now;
  }

  async run(isOver: () => boolean): Promise<void> {
    while (!isOver()) await this.scrape();
  }

  [Symbol.dispose](): void {
    this.#connection[Symbol.dispose]();
  }
}

/**
 * Sends requests of every kind, many of which end with their worker. Resolves with how many got neither an answer nor
 * an error.
 */
async function traffic(service: Service, isOver: () => boolean): Promise<number> {
  let lost = 0;
  for (let count = 0; !isOver(); count++) {
    const signal = AbortSignal.timeout(limitMs);
    const path = count % 3 === 0 ? '/nowhere' : '/version';
    const sent =
      count % 10 === 0 ? service.post('/ask', { prompt: 'hello' }, {}, signal) : service.get(path, {}, signal);
    await sent.catch(({ name }: Error) => {
      if (name === 'TimeoutError') lost++;
    });
  }
  return lost;
}

/** Kills ready workers one after the other, except the scraped one. A separate scrape observes each death. */
async function killWorkers(service: Service, scraper: Scraper): Promise<void> {
  const killed = new Set([scraper.workerPid]);
  const nextVictim = async () => {
    const ready = await service.workers(AbortSignal.timeout(limitMs)).catch(() => []);
    return ready.find((pid) => !killed.has(pid));
  };
  for (let count = 0; count < kills; count++) {
    const victim = await until(nextVictim, 'a worker to kill');
    killed.add(victim);
    const { scrapes } = scraper;
    process.kill(victim, 'SIGKILL');
    await until(() => scraper.scrapes > scrapes, 'a scrape');
  }
}

describe('Scrapes', () => {
  it(`are all answered, and no counter falls, while ${kills} workers are killed under traffic`, async () => {
    await using service = await startService({ env: { MODEL_API_WORKERS: '4' } });
    using scraper = await Scraper.start(service, limitMs);
    let isOver = false;
    const running = Promise.all([
      scraper.run(() => isOver),
      traffic(service, () => isOver),
      traffic(service, () => isOver),
    ]);
    const killing = killWorkers(service, scraper).finally(() => {
      isOver = true;
    });
    const [[, ...lost]] = await Promise.all([running, killing]);
    expect(lost).toEqual([0, 0]);
    await until(
      async () => (await scraper.scrape()).value('worker_restarts_total{cause="crash"}') === kills,
      'every restart',
    );
    expect(scraper.scrapes).toBeGreaterThanOrEqual(kills);
    expect(scraper.slow).toBeLessThan(scraper.scrapes / 10);
    expect(scraper.last.sum('http_requests_total', { route: '/version' })).toBeGreaterThan(kills);
    expect(scraper.last.sum('jobs_total')).toBeGreaterThan(0);
  }, 120_000);

  it('are answered in time even if a worker is stopped, and count it', async () => {
    await using service = await startService({ env: { MODEL_API_WORKERS: '3' } });
    using scraper = await Scraper.start(service, scrapeLimitMs);
    const stopped = (await service.workers()).find((pid) => pid !== scraper.workerPid) as number;
    const before = scraper.last.value('worker_scrape_failures_total');
    process.kill(stopped, 'SIGSTOP');
    try {
      for (let count = 1; count <= 4; count++) {
        expect((await scraper.scrape()).value('worker_scrape_failures_total')).toBe(before + count);
        // A new connection goes to a worker that accepts it.
        using connection = await RawConnection.open(service.port);
        connection.send(request('GET /version'));
        expect(await connection.answer({ withinMs: limitMs })).toMatchObject({ status: 200 });
      }
    } finally {
      process.kill(stopped, 'SIGCONT');
    }
    await until(async () => {
      const failures = scraper.last.value('worker_scrape_failures_total');
      return (await scraper.scrape()).value('worker_scrape_failures_total') === failures;
    }, 'the worker to answer again');
  });
});

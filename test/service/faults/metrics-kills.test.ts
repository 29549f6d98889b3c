import { until } from '../../support/basics/until.js';
import { RawConnection, request } from '../../support/clients/raw-http.js';
import { Exposition, fallen } from '../../support/documents/exposition.js';
import { type Service, startService } from '../../support/service/service.js';

/** Time limit of a scrape, also while a worker does not answer. */
const scrapeLimitMs = 1000;
/** Time limit of a request on a busy machine. */
const limitMs = 5000;

/** Scrapes over one connection. Fails if a counter decreases or a scrape takes too long. */
class Scraper implements Disposable {
  readonly #connection: RawConnection;
  /** Pid of the worker that has the connection. */
  readonly workerPid: number;
  last: Exposition;

  private constructor(connection: RawConnection, workerPid: number, first: Exposition) {
    this.#connection = connection;
    this.workerPid = workerPid;
    this.last = first;
  }

  static async start(service: Service): Promise<Scraper> {
    const connection = await RawConnection.open(service.port);
    connection.send(request('GET /metrics', ['X-Request-Id: first-scrape']));
    const { text } = await connection.answer();
    const { pid } = await service.log('http_request_completed', ({ request_id }) => request_id === 'first-scrape');
    return new Scraper(connection, Number(pid), new Exposition(text));
  }

  async scrape(): Promise<Exposition> {
    const startedMs = performance.now();
    this.#connection.send(request('GET /metrics'));
    const { status, text } = await this.#connection.answer();
    expect(status).toBe(200);
    expect(performance.now() - startedMs).toBeLessThan(scrapeLimitMs);
    const now = new Exposition(text);
    expect(fallen(this.last.growing(), now.growing())).toEqual([]);
    this.last = now;
    return now;
  }

  [Symbol.dispose](): void {
    this.#connection[Symbol.dispose]();
  }
}

describe('Scrapes', () => {
  it('are answered in time even if a worker is stopped, and count it', async () => {
    await using service = await startService({ env: { MODEL_API_WORKERS: '3' } });
    using scraper = await Scraper.start(service);
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

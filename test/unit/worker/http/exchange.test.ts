import { systemClock } from '../../../../src/shared/clock.js';
import { atRoute, type Handler, requestIdFrom } from '../../../../src/worker/http/exchange.js';
import { JobReport } from '../../../../src/worker/jobs/run-job.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { until } from '../../../support/basics/until.js';
import { RawConnection, request } from '../../../support/clients/raw-http.js';
import { countsIn, type ExpressServer, passed, serveWith } from '../../../support/doors/express-server.js';
import { jobDone } from '../../../support/jobs/job-records.js';

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Returns the fields of the only record that the server has logged. */
async function recordOf({ log }: ExpressServer) {
  const entry = await until(() => log.entries[0], 'the record');
  expect([log.entries.length, entry.level, entry.event]).toEqual([1, 'info', 'http_request_completed']);
  return entry.fields;
}

describe('A request id', () => {
  it.each(['a', 'A-Za_z0.9', 'x'.repeat(64), '6f1d-22'])('is taken from the client if it is well formed: %s', (id) => {
    expect(requestIdFrom(id)).toBe(id);
  });

  it.each([undefined, '', 'x'.repeat(65), 'a b', 'a\n', 'é', 'a,b', '{"x":1}', '../x'])(
    'is a new UUID if it is malformed: %j',
    (header) => {
      expect(requestIdFrom(header)).toMatch(uuid);
    },
  );

  it('is never generated twice', () => {
    const ids = Array.from({ length: 1000 }, () => requestIdFrom(undefined));
    expect(new Set(ids).size).toBe(1000);
  });
});

describe('Every response', () => {
  const common = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' };

  it('has the request id and the common headers', async () => {
    await using server = await serveWith([passed]);
    expect((await server.get('X-Request-Id: mine')).headers).toMatchObject({ ...common, 'x-request-id': 'mine' });
    const { headers } = await server.get();
    expect(headers).toMatchObject({ ...common, 'x-request-id': expect.stringMatching(uuid) });
    expect(headers.connection).not.toBe('close');
  });

  it('closes its connection if the worker is about to exit', async () => {
    await using server = await serveWith([passed], { isClosing: () => true });
    expect((await server.get()).headers.connection).toBe('close');
  });

  it('closes its connection if the client waits for 100 Continue', async () => {
    await using server = await serveWith([passed]);
    const answer = await server.send(request('POST /', ['Expect: 100-continue', 'Content-Length: 5']));
    expect(answer).toMatchObject({ status: 200, headers: { connection: 'close' } });
  });
});

describe('The log record of a request', () => {
  it('has its line, its status and its duration', async () => {
    const clock = new FakeClock();
    const slow: Handler = (_req, _res, next) => void clock.advance(12.34).then(() => next());
    await using server = await serveWith([slow, passed], { clock });
    await server.get('X-Request-Id: mine');
    expect(await recordOf(server)).toEqual({
      request_id: 'mine',
      method: 'GET',
      path: '/',
      status_code: 200,
      duration_ms: 12.3,
    });
  });

  it.each([
    ['/version?secret', '/version'],
    ['/version#secret', '/version'],
    ['http://secret:secret@localhost/version?secret', '/version'],
    [`/${'x'.repeat(300)}`, `/${'x'.repeat(255)}`],
  ])('has the path of %s and no other part of it', async (target, path) => {
    await using server = await serveWith([passed]);
    await server.send(request(`GET ${target}`));
    expect((await recordOf(server)).path).toBe(path);
  });

  it('has the client, cut to a maximum length, and the code of an error', async () => {
    const refuse: Handler = (_req, res) => {
      res.locals.client = `key ${'x'.repeat(200)}`;
      res.locals.error = 'forbidden';
      res.status(403).end();
    };
    await using server = await serveWith([refuse]);
    await server.get();
    const { client, ...fields } = await recordOf(server);
    expect(client).toHaveLength(128);
    expect(fields).toMatchObject({ status_code: 403, error: 'forbidden' });
  });

  it('has the outcome of the job, and its usage if known', async () => {
    const clock = new FakeClock();
    const runJob: Handler = (_req, res, next) => {
      const report = new JobReport(clock);
      report.follow(jobDone({ queueMs: 1, executionMs: 2, processorMs: 3 }));
      res.locals.job = report;
      next();
    };
    await using server = await serveWith([runJob, passed]);
    await server.get();
    const fields = await recordOf(server);
    expect(fields).toMatchObject({ outcome: 'ok', queue_ms: 1, execution_ms: 2, processor_ms: 3 });
    expect(fields).not.toHaveProperty('peak_memory_bytes');
  });
});

describe('An answered request', () => {
  it.each<[string, Handler[]]>([
    ['/version', [atRoute('/version')]],
    ['other', []],
  ])('is counted under its method, status and route, with the code of its error: %s', async (route, before) => {
    const refuse: Handler = (_req, res) => {
      res.locals.error = 'unauthorized';
      res.status(401).end();
    };
    await using server = await serveWith([...before, refuse]);
    await server.get();
    await recordOf(server);
    const counts = await countsIn(server.metrics);
    expect(counts('http_requests_total')).toEqual([{ labels: { method: 'GET', route, code: '401' }, value: 1 }]);
    expect(counts('errors_total')).toEqual([{ labels: { route, error: 'unauthorized' }, value: 1 }]);
  });
});

describe('The heap keeper', () => {
  it('is called for each finished exchange', async () => {
    let exchanges = 0;
    await using server = await serveWith([passed], { heap: { touch: () => exchanges++ } });
    await Promise.all([server.get(), server.get()]);
    await until(() => server.log.entries.length === 2, 'both records');
    expect(exchanges).toBe(2);
  });
});

describe('A request whose client has disconnected', () => {
  it('is logged as 499 and counted as aborted only', async () => {
    await using server = await serveWith([atRoute('/ask'), () => {}], { clock: systemClock });
    using connection = await RawConnection.open(server.port);
    connection.send(request('GET /'));
    await until(() => server.metrics.hasNews, 'the request');
    connection.reset();
    expect(await recordOf(server)).toMatchObject({ status_code: 499 });
    const counts = await countsIn(server.metrics);
    expect(counts('http_aborted_requests_total')).toEqual([{ labels: { route: '/ask' }, value: 1 }]);
    expect([counts('http_requests_total'), counts('http_requests_in_flight')]).toEqual([[], []]);
  });
});

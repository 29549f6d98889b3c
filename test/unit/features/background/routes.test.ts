import { connect } from 'node:net';
import { deleteJob, endId, getJob, getJobEvents, getJobs } from '../../../../src/features/background/routes.js';
import { orAborted } from '../../../../src/shared/async.js';
import type { JobView } from '../../../../src/shared/background.js';
import { systemClock } from '../../../../src/shared/clock.js';
import { RelayError } from '../../../../src/shared/errors.js';
import type { JobEvent } from '../../../../src/shared/job.js';
import { atRoute, type Handler } from '../../../../src/worker/http/exchange.js';
import { settled } from '../../../support/basics/settled.js';
import { until } from '../../../support/basics/until.js';
import { exchange, RawConnection, request } from '../../../support/clients/raw-http.js';
import { answerOf, asHolder, serveWith } from '../../../support/doors/express-server.js';
import { offlineRoutes } from '../../../support/doors/offline-routes.js';
import { answerInPieces, backgroundView } from '../../../support/jobs/background-view.js';
import { FakePrimary } from '../../../support/jobs/fake-primary.js';
import { forever } from '../../../support/jobs/job-harness.js';
import { jobDone } from '../../../support/jobs/job-records.js';

const missing = new RelayError('not_found', 'no such job');
const started: JobEvent = { type: 'job-start', queueMs: 1 };
const hello: JobEvent = { type: 'text-delta', text: 'Hello' };
const end = jobDone({ model: 'eliza' });
const whole = [started, hello, end];
const jobAnswer = answerInPieces('Hello', end);
const running = backgroundView({ status: 'running', endedAt: null });
const [created_at, started_at, ended_at] = [1, 2, 3].map((second) => `1970-01-01T00:00:0${second}.000Z`);
const known = { job_id: 'some-id', background: true, title: 'Hi', operation: 'ask', status: 'succeeded' } as const;
const listed = { ...known, position: null, reason: null, created_at, started_at, ended_at };

/** Yields these events; with `hangs`, then waits until the signal is aborted. */
function telling(events: readonly JobEvent[], hangs = false) {
  return async function* (_request: unknown, signal: AbortSignal): AsyncGenerator<JobEvent> {
    yield* events;
    if (hangs) await orAborted(forever, signal);
  };
}

/** Adds nothing to the answers about jobs. */
const features = { jobFields: async () => ({}) };

/** Requests the list of background jobs, of which the primary returns this page. */
async function list(query: string, page: object | null, ...checks: Handler[]) {
  const primary = new FakePrimary(page === null ? {} : { jobs: page });
  const sent = request(`GET /${query}`, ['X-Request-Id: mine']);
  const answer = await answerOf([...checks, getJobs(primary.asPrimary)], sent);
  return { ...answer, calls: primary.calls };
}

/** Requests the job that the primary has. */
function shown(job: JobView | Error, answers: object = {}, ...headers: string[]) {
  const primary = new FakePrimary({ job, ...answers });
  return answerOf(
    [atRoute('/jobs/{job_id}'), getJob({ primary: primary.asPrimary, offlineRoutes, features })],
    headers,
  );
}

function serve(primary: FakePrimary, closing = new AbortController()) {
  const parts = { primary: primary.asPrimary, offlineRoutes, clock: systemClock, features };
  return {
    job: () => serveWith([atRoute('/jobs/{job_id}'), getJob(parts)]),
    events: () => serveWith([atRoute('/jobs/{job_id}/events'), getJobEvents(parts, closing.signal)]),
  };
}

describe('The list of background jobs', () => {
  it('is requested with the parameters of the query, and contains no text except the title', async () => {
    const page = { jobs: [backgroundView()], next: 17 };
    const { body, calls } = await list('?status=succeeded&limit=100&cursor=99', page);
    const order = { client: '', status: 'succeeded', before: 99, limit: 100 };
    expect(calls).toEqual([{ name: 'jobs', request: order }]);
    expect(body).toEqual({ jobs: [listed], next_cursor: '17', request_id: 'mine' });
  });

  it('contains open requests, and continues its pages after the last one', async () => {
    const open = backgroundView({ id: '7-abcdefgh', form: null, status: 'running', endedAt: null });
    const { body, calls } = await list('?limit=1&cursor=-8', { jobs: [open], next: -7 });
    expect(calls).toMatchObject([{ request: { before: -8 } }]);
    expect(body).toMatchObject({ jobs: [{ job_id: '7-abcdefgh', background: false }], next_cursor: '-7' });
  });

  it.each([
    ...['status=done', 'status=queued&status=running', 'limit=0', 'limit=1e1'],
    ...['cursor=1-', 'cursor=x', 'cursor=99999999999999999999'],
  ])('rejects %s', async (query) => {
    const { status, body, calls } = await list(`?${query}`, null);
    expect([status, body.error, calls]).toEqual([400, 'validation_error', []]);
  });
});

const asAdmin = asHolder('', { scopes: ['admin'] });

describe('An administrator', () => {
  it('lists the jobs of all clients with their names, which no other client can', async () => {
    const page = { jobs: [backgroundView()], next: null };
    const refused = await list('?all=true', page);
    expect([refused.status, refused.body.error, refused.calls]).toEqual([403, 'forbidden', []]);
    const [all, own] = [await list('?all=true', page, asAdmin), await list('', page, asAdmin)];
    expect([all.body.jobs, own.body.jobs]).toEqual([[{ ...listed, client: 'key ada' }], [listed]]);
    expect([all.calls, own.calls]).toMatchObject([[{ request: { client: null } }], [{ request: { client: '' } }]]);
  });

  it('can cancel any job', async () => {
    const primary = new FakePrimary({ deleteJob: { status: 'cancelled' } });
    await answerOf([asAdmin, deleteJob(primary.asPrimary)], request('DELETE /?keep_ended=true'));
    expect(primary.calls[0]?.request).toMatchObject({ isAdmin: true, keepsEnded: true });
  });
});

describe('A job with an open request', () => {
  const primary = new FakePrimary({ job: backgroundView({ form: null, status: 'running', endedAt: null }) });

  it('is shown', async () => {
    await using server = await serve(primary).job();
    expect((await server.get()).body).toMatchObject({ job_id: 'some-id', background: false, status: 'running' });
  });

  it('has no events for other readers: only its request receives them', async () => {
    await using server = await serve(primary).events();
    const message = expect.stringContaining('the request that sent it');
    expect((await server.get()).body).toMatchObject({ error: 'not_found', message });
  });
});

describe('A background job', () => {
  const failure = { code: 'timeout', message: 'too long' } as const;
  const error = { error: 'timeout', message: 'too long', request_id: 'request 1' };
  const waits = { status: 'queued', position: 4, reason: 'cli' } as const;

  it.each<[string, Partial<JobView>, object]>([
    [
      'its position while it waits',
      { ...waits, startedAt: null, endedAt: null },
      { ...waits, started_at: null, ended_at: null },
    ],
    ['its error after a failure', { status: 'failed', failure }, { status: 'failed', error }],
  ])('shows %s', async (_, differences, expected) => {
    const { body } = await shown(backgroundView(differences), {}, 'X-Request-Id: mine');
    expect(body).toEqual({ ...listed, ...expected, request_id: 'mine' });
  });

  it('shows the body of the plain answer after success, with the id of its request', async () => {
    const { body } = await shown(backgroundView(), { jobAnswer }, 'X-Request-Id: mine');
    const result = { success: true, response: 'Hello', model: 'eliza', request_id: 'request 1' };
    expect(body).toMatchObject({ ...listed, result, request_id: 'mine' });
  });

  it('of an API that the service no longer has is not found', async () => {
    const form = { route: '/gone', model: 'eliza', isStructured: false };
    const { status, body } = await shown(backgroundView({ form }), { jobAnswer });
    expect([status, body.message]).toEqual([404, 'this service no longer has the API of the job']);
  });

  it('of /v1/responses shows the answer in that format', async () => {
    const form = { route: '/v1/responses', model: 'eliza', tool: null, isStructured: false } as const;
    const { body } = await shown(backgroundView({ form }), { jobAnswer });
    expect(body.result).toMatchObject({ id: 'resp_some-id', object: 'response', status: 'completed', created_at: 1 });
  });

  it('of another client is not found', async () => {
    const primary = new FakePrimary({ job: missing, deleteJob: missing }, telling([]));
    const { job, events } = serve(primary);
    for (const server of [await job(), await events(), await serveWith([deleteJob(primary.asPrimary)])]) {
      await using _ = server;
      expect(await server.get()).toMatchObject({ status: 404, body: { error: 'not_found', message: 'no such job' } });
    }
  });

  it('that is deleted while it is read is not found', async () => {
    expect((await shown(backgroundView(), { jobAnswer: missing })).status).toBe(404);
    const long = answerInPieces('x'.repeat(100_000), end);
    const forgotten = ({ from }: { readonly from: number }) => {
      if (from > 50_000) throw missing;
      return long({ from });
    };
    await using other = await serve(new FakePrimary({ job: backgroundView(), jobAnswer: forgotten })).job();
    await expect(fetch(`http://127.0.0.1:${other.port}/`).then((response) => response.text())).rejects.toThrow();
  });

  it.each([
    ['cancelled', { status: 'cancelled', deleted: false }],
    [null, { status: null, deleted: true }],
  ])('is cancelled or deleted by DELETE', async (status, fate) => {
    const primary = new FakePrimary({ deleteJob: { status } });
    const { body } = await answerOf([deleteJob(primary.asPrimary)], ['X-Request-Id: mine']);
    expect(body).toMatchObject({ success: true, ...fate, request_id: 'mine' });
    const order = { id: 'undefined', client: '', isAdmin: false, keepsEnded: false, requestId: 'mine' };
    expect(primary.calls).toEqual([{ name: 'deleteJob', request: order }]);
  });

  it('that an administrator cancelled shows it, without a name', async () => {
    const job = backgroundView({ status: 'cancelled', isEndedByAdmin: true });
    expect((await shown(job)).body).toMatchObject({ status: 'cancelled', cancelled_by: 'administrator' });
  });
});

describe('The events of a background job', () => {
  it('are answered with 204 if the reader has received all of them', async () => {
    await using server = await serve(new FakePrimary({ job: backgroundView(), jobAnswer }, telling(whole))).events();
    expect((await server.get(`Last-Event-ID: ${endId}`)).status).toBe(204);
    const { status, text } = await server.get(`Last-Event-ID: ${endId - 1}`, 'Connection: close');
    expect([status, text.length >= 0]).toEqual([200, true]);
  });

  it.each(['-1', '1.5', 'abc', '0x1', '9999999999999999', '1, 2', 'ü'])(
    'are rejected for an invalid event id: %s',
    async (id) => {
      await using server = await serve(new FakePrimary({ job: backgroundView(), jobAnswer }, telling(whole))).events();
      const { status, body } = await server.get(`Last-Event-ID: ${id}`);
      expect([status, body.error]).toEqual([400, 'validation_error']);
    },
  );

  it('start the response at once, even before the first event, and HEAD gets only that', async () => {
    await using server = await serve(new FakePrimary({ job: running }, telling([], true))).events();
    const response = await fetch(`http://127.0.0.1:${server.port}/`);
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    await response.body?.cancel();
    for (const job of [running, backgroundView()]) {
      await using other = await serve(new FakePrimary({ job }, telling([], true))).events();
      const { status, headers } = await exchange(other.port, request('HEAD /'), true);
      expect([status, headers['content-type']]).toEqual([200, 'text/event-stream; charset=utf-8']);
    }
  });

  it('end when the worker exits: readers reconnect and resume', async () => {
    const closing = new AbortController();
    const primary = new FakePrimary({ job: running }, telling([started, hello], true));
    await using server = await serve(primary, closing).events();
    const response = await fetch(`http://127.0.0.1:${server.port}/`);
    const text = response.text();
    await new Promise((resolve) => setImmediate(resolve));
    closing.abort();
    expect(await text).toMatch(/^id: 1\nevent: started\n/);
    expect((await (await fetch(`http://127.0.0.1:${server.port}/`)).text()).length).toBeGreaterThanOrEqual(0);
  });

  it('are cut off for a client that does not read when the worker exits', async () => {
    const closing = new AbortController();
    let told = 0;
    const flooding = async function* (_request: unknown, signal: AbortSignal): AsyncGenerator<JobEvent> {
      for (; !signal.aborted; told++) yield { type: 'text-delta', text: 'x'.repeat(16_000) };
      signal.throwIfAborted();
    };
    await using server = await serve(new FakePrimary({ job: running }, flooding), closing).events();
    const socket = connect(server.port, '127.0.0.1').on('error', () => {});
    socket.pause().write(request('GET /'));
    await until(async () => {
      const before = told;
      await settled(100);
      return told > 0 && told === before;
    }, 'a stream that is held up');
    closing.abort();
    await until(() => server.log.entries.some(({ event }) => event === 'http_request_completed'), 'the end');
    socket.destroy();
  });

  it('stop when their reader disconnects', async () => {
    let signalOfStream: AbortSignal | null = null;
    const hanging = async function* (_request: unknown, signal: AbortSignal): AsyncGenerator<JobEvent> {
      signalOfStream = signal;
      yield started;
      await orAborted(forever, signal);
    };
    await using server = await serve(new FakePrimary({ job: running }, hanging)).events();
    using connection = await RawConnection.open(server.port);
    connection.send(request('GET /'));
    await until(() => signalOfStream !== null, 'the stream');
    connection.reset();
    await until(() => signalOfStream?.aborted ?? false, 'the end of the stream');
  });
});

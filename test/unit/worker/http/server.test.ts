import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { delay, systemClock } from '../../../../src/shared/clock.js';
import { bindTcp } from '../../../../src/shared/node-internals/connections.js';
import { ReadingPace } from '../../../../src/worker/http/body.js';
import type { Listener } from '../../../../src/worker/http/connection.js';
import { HttpMetrics } from '../../../../src/worker/http/exchange.js';
import { HttpServer } from '../../../../src/worker/http/server.js';
import { LogBook } from '../../../support/basics/log-book.js';
import { until } from '../../../support/basics/until.js';
import { jsonPost, RawConnection, request } from '../../../support/clients/raw-http.js';
import { countsIn } from '../../../support/doors/express-server.js';

const limits = {
  ...{ headersMs: 300, requestMs: 600, keepAliveMs: 200, unreadMs: 300, checkEveryMs: 50, watchEveryMs: 20 },
  ...{ unsentBytes: 64 * 1024 * 1024, unsentMs: 100, maxIdle: 500, minIdleMs: 100 },
};
/** More than the kernel buffers for a client that does not read. */
const largeBytes = 16 * 1024 * 1024;
const garbage = 'this is no HTTP\r\n\r\n';

/** Answers each request with its path: `/held` on demand, `/body` after its body, any other at once. */
class Exchanges {
  readonly begun: string[] = [];
  readonly closed: string[] = [];
  readonly held: (() => void)[] = [];

  readonly listener: Listener = (req, res) => {
    this.begun.push(req.url ?? '');
    res.once('close', () => this.closed.push(req.url ?? ''));
    res.setHeader('X-Request-Id', `of ${req.url}`);
    const answer = () => res.end(req.url);
    if (!req.url?.startsWith('/jobless')) Object.assign(res, { locals: { job: {} } });
    if (/^\/(held|jobless)/.test(req.url ?? '')) this.held.push(answer);
    else if (req.url === '/large') res.end(Buffer.alloc(largeBytes));
    else if (req.url === '/stream') this.#pingForever(res);
    else if (req.url === '/upload') {
      Object.assign(res, { locals: { isUpload: true } });
      req.resume().once('end', answer);
    } else if (req.url === '/body') req.resume().once('end', answer);
    else if (req.url === '/too-large') res.writeHead(413, { 'Content-Length': 0 }).end();
    else if (req.url === '/closing') res.setHeader('Connection', 'close').end(req.url);
    else answer();
  };

  /** Writes more than the kernel buffers, then a little from time to time, like a stream with pings. */
  #pingForever(res: Parameters<Listener>[1]): void {
    res.write(Buffer.alloc(largeBytes));
    const stop = systemClock.every(limits.unreadMs / 10, () => res.write(': ping\n\n'));
    res.once('close', stop);
  }
}

async function start(changes: Partial<typeof limits> = {}, pace = new ReadingPace(systemClock)) {
  const exchanges = new Exchanges();
  const log = new LogBook();
  const metrics = new HttpMetrics();
  const limit = { admit: () => Promise.reject(new Error('only connections on a Unix socket are asked about')) };
  const parts = { log, metrics, clock: systemClock, limit, pace };
  const server = new HttpServer(exchanges.listener, parts, { ...limits, ...changes });
  const { fd, address } = await bindTcp('127.0.0.1', 0);
  await server.listen(fd);
  const port = address?.port ?? 0;
  const connection = await RawConnection.open(port);
  const stop = async () => {
    connection[Symbol.dispose]();
    await server.stop(0);
  };
  return { server, port, exchanges, log, metrics, connection, stop, [Symbol.asyncDispose]: stop };
}

const commonHeaders = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' };

function get(...paths: string[]): Buffer {
  return Buffer.concat(paths.map((path) => request(`GET ${path}`)));
}

/** Reads chunks until this many bytes have arrived, then pauses the socket. */
async function take(socket: Socket, bytes: number): Promise<void> {
  for (let taken = 0; taken < bytes; ) {
    const [piece] = (await once(socket.resume(), 'data')) as [Buffer];
    socket.pause();
    taken += piece.length;
  }
}

function refusal(message: string, requestId: unknown = expect.any(String)) {
  return { error: 'validation_error', message, request_id: requestId, details: [] };
}

/** Counts the requests that begin in each turn of the event loop, until it is disposed of. */
function countInTurns(begun: readonly string[]): { readonly counts: number[] } & Disposable {
  const counts: number[] = [];
  let next: NodeJS.Immediate;
  let seen = 0;
  const endTurn = () => {
    counts.push(begun.length - seen);
    seen = begun.length;
    next = setImmediate(endTurn);
  };
  next = setImmediate(endTurn);
  return { counts, [Symbol.dispose]: () => clearImmediate(next) };
}

let { server, port, exchanges, log, metrics, connection, stop } = {} as Awaited<ReturnType<typeof start>>;
beforeEach(async () => {
  ({ server, port, exchanges, log, metrics, connection, stop } = await start());
});
afterEach(() => stop());

/** Waits for the first request that is answered on demand, and returns the function that answers it. */
function firstHeld(): Promise<() => void> {
  return until(() => exchanges.held[0], 'the first request');
}

/** Returns the texts of the next answers. */
async function nextTexts(count: number): Promise<string[]> {
  const texts: string[] = [];
  while (texts.length < count) texts.push((await connection.answer()).text);
  return texts;
}

/** Sends a request on a new connection that reads nothing. */
async function sendUnread(path: string, { port, exchanges }: { port: number; exchanges: Exchanges }): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').pause();
  socket.on('error', () => {}).write(get(path));
  await until(() => exchanges.begun.includes(path), 'the request');
  return socket;
}

describe('A turn of the event loop', () => {
  it('reads no further connection after it has taken too long', async () => {
    let nowMs = 0;
    const pace = new ReadingPace({ ...systemClock, monotonicMs: () => (nowMs += 1000) });
    await using paced = await start({ headersMs: 30_000, requestMs: 60_000 }, pace);
    const connections = await Promise.all(Array.from({ length: 20 }, () => RawConnection.open(paced.port)));
    await until(() => paced.server.size > connections.length || undefined, 'all connections to be accepted');
    using turns = countInTurns(paced.exchanges.begun);
    for (const [index, connection] of connections.entries()) connection.send(get(`/${index}`));
    const texts = (await Promise.all(connections.map((connection) => connection.answer()))).map(({ text }) => text);
    for (const connection of connections) connection[Symbol.dispose]();
    expect(texts).toEqual(connections.map((_, index) => `/${index}`));
    expect(Math.max(...turns.counts)).toBe(2);
  });
});

describe('A connection', () => {
  it('gets its pipelined requests answered in order, each started after the previous answer', async () => {
    connection.send(get('/held', '/2', '/3'));
    const answer = await firstHeld();
    expect(exchanges.begun).toEqual(['/held']);
    expect(connection.hasMore).toBe(false);
    answer();
    expect(await nextTexts(3)).toEqual(['/held', '/2', '/3']);
  });

  it('gets a hundred pipelined requests answered', async () => {
    const paths = Array.from({ length: 100 }, (_, n) => `/${n}`);
    connection.send(get(...paths));
    expect(await nextTexts(100)).toEqual(paths);
  });

  it('gets a refusal in place of all waiting requests if more wait than the limit', async () => {
    connection.send(get('/held', ...Array.from({ length: 300 }, (_, n) => `/${n}`)));
    (await firstHeld())();
    expect(await connection.answer()).toMatchObject({ text: '/held' });
    const { status, headers, body } = await connection.answer();
    expect([status, body.error]).toEqual([429, 'concurrency_limited']);
    expect(headers).toMatchObject({ connection: 'close', 'retry-after': '1' });
    await connection.closed();
    expect([exchanges.begun, connection.hasMore, log.entries.length]).toEqual([['/held'], false, 1]);
  });

  it('is closed if its client pipelines far more requests than the limit', async () => {
    connection.send(get('/held', ...Array.from({ length: 600 }, (_, n) => `/${n}`)));
    await connection.closed();
    expect(exchanges.begun).toEqual(['/held']);
  });

  it.each<[string, (connection: RawConnection) => void]>([
    ['ends its half', (connection) => connection.endInput()],
    ['resets it', (connection) => connection.reset()],
    ['stays', () => {}],
  ])('is closed if its client sends a body that is too large to read ahead after a job, and %s', async (_, leave) => {
    connection.send(Buffer.concat([get('/held'), jsonPost('/body', Buffer.alloc(200_000))]));
    await firstHeld();
    leave(connection);
    await until(() => exchanges.closed.includes('/held'), 'the job to be given up', 1000);
    expect(exchanges.begun).toEqual(['/held']);
  });

  it.each([
    ['a large body after a request without a job', '/jobless', 200_000],
    ['a small body after a job', '/held', 10_000],
  ])('is not closed for %s', async (_, path, bytes) => {
    connection.send(Buffer.concat([get(path), jsonPost('/body', Buffer.alloc(bytes))]));
    const answer = await firstHeld();
    await delay(systemClock, 5 * limits.watchEveryMs);
    answer();
    expect(await nextTexts(2)).toEqual([path, '/body']);
  });

  it('does not start a waiting request after its client has disconnected', async () => {
    connection.send(get('/held', '/2'));
    const answer = await firstHeld();
    connection[Symbol.dispose]();
    await until(() => exchanges.closed.includes('/held'), 'the server to notice');
    answer();
    expect(exchanges.begun).toEqual(['/held']);
  });

  it('does not start a waiting request after an answer that closes the connection', async () => {
    connection.send(get('/closing', '/2'));
    expect(await connection.answer()).toMatchObject({ text: '/closing', headers: { connection: 'close' } });
    await connection.closed();
    expect(exchanges.begun).toEqual(['/closing']);
  });

  it('is closed if its client does not read an answer, and not if it reads slowly', async () => {
    const socket = await sendUnread('/large', { port, exchanges });
    for (let piece = 0; piece < 4; piece++) {
      await delay(systemClock, limits.unreadMs / 2);
      await take(socket, largeBytes / 8);
    }
    expect(exchanges.closed).toEqual([]);
    await until(() => exchanges.closed.includes('/large'), 'the server to give up');
    socket.destroy();
  });

  it.each(['/large', '/stream'])(
    'is closed once its client has read nothing for the time limit, no sooner and not much later: %s',
    async (path) => {
      const socket = await sendUnread(path, { port, exchanges });
      const begunMs = performance.now();
      await until(() => exchanges.closed.includes(path), 'the server to give up');
      expect(performance.now() - begunMs).toBeGreaterThan(limits.unreadMs - 10);
      expect(performance.now() - begunMs).toBeLessThan(1.9 * limits.unreadMs);
      socket.destroy();
    },
  );

  it('is closed sooner if its client does not read once the server is in a hurry, and never later', async () => {
    server.hurry(1);
    server.hurry(60_000);
    const socket = await sendUnread('/large', { port, exchanges });
    await until(() => exchanges.closed.includes('/large'), 'the server to give up', limits.unreadMs - 10);
    socket.destroy();
  });

  it('is closed if clients together leave too much unread, starting with the longest wait', async () => {
    const unsentBytes = 2.5 * largeBytes;
    await using house = await start({ unreadMs: 60_000, unsentBytes });
    const sockets = await Promise.all(Array.from({ length: 4 }, () => sendUnread('/large', house)));
    await until(() => house.exchanges.closed.length > 0, 'the server to give up');
    await delay(systemClock, 10 * limits.watchEveryMs);
    expect(house.exchanges.closed.length).toBeLessThanOrEqual(2); // the kernel has buffered a part of each
    for (const socket of sockets) socket.destroy();
  });

  it('has no time limit for an answer that follows another', async () => {
    connection.send(get('/1', '/held'));
    const answer = await firstHeld();
    await delay(systemClock, 2 * limits.unreadMs);
    answer();
    expect(await nextTexts(2)).toEqual(['/1', '/held']);
  });

  it('is closed after the keep-alive time', async () => {
    connection.send(get('/1'));
    await connection.answer();
    expect(await connection.closed()).toBeGreaterThan(limits.keepAliveMs);
  });

  it('is open for longer than the header tells clients', async () => {
    await using kept = await start({ keepAliveMs: 1_900 });
    kept.connection.send(get('/1'));
    const { headers } = await kept.connection.answer();
    await delay(systemClock, 1_050);
    kept.connection.send(get('/2'));
    expect([headers['keep-alive'], (await kept.connection.answer()).text]).toEqual(['timeout=1', '/2']);
  });

  it('is closed before the keep-alive time if more connections are idle than the limit allows', async () => {
    await using bounded = await start({ keepAliveMs: 60_000, maxIdle: 1 });
    using first = await RawConnection.open(bounded.port);
    using second = await RawConnection.open(bounded.port);
    for (const each of [first, second]) {
      each.send(get('/1'));
      await each.answer();
      await delay(systemClock, 2 * limits.watchEveryMs);
    }
    expect(await first.closed()).toBeGreaterThan(limits.minIdleMs);
    second.send(get('/2'));
    expect((await second.answer()).text).toBe('/2');
  });
});

describe('Invalid requests', () => {
  it('are answered with 400 and logged, and the connection is closed even if the client does not close its side', async () => {
    connection.send(garbage);
    const { status, headers, body } = await connection.answer();
    expect([status, body]).toEqual([400, refusal('the request is not valid HTTP')]);
    expect(headers).toMatchObject({ ...commonHeaders, 'x-request-id': body.request_id, connection: 'close' });
    const fields = { request_id: body.request_id, method: '', path: '', status_code: 400, duration_ms: 0 };
    expect(log.entries).toEqual([
      { level: 'info', event: 'http_request_completed', fields: { ...fields, error: 'validation_error' } },
    ]);
    await connection.closed();
    await until(() => server.size === 0, 'the server to let go');
  });

  it.each<[number, string, string, string | Buffer, number]>([
    [400, 'are not HTTP', 'the request is not valid HTTP', garbage, 0],
    [408, 'arrive too slowly', 'the request did not arrive in time', 'GET / HTTP/1.1\r\nX: ', limits.headersMs],
    [431, 'have too large headers', 'the headers are too large', request('GET /', [`X: ${'x'.repeat(4_000_000)}`]), 0],
  ])('are answered with %d if they %s, and counted', async (code, _, message, bytes, closedAfterMs) => {
    connection.send(bytes);
    const { status, body } = await connection.answer();
    expect([status, body]).toEqual([code, refusal(message)]);
    const counts = await countsIn(metrics);
    const labels = { method: 'other', route: 'other', code: String(code) };
    expect(counts('http_requests_total')).toEqual([{ value: 1, labels }]);
    expect(counts('errors_total')).toEqual([{ value: 1, labels: { route: 'other', error: 'validation_error' } }]);
    expect(await connection.closed()).toBeGreaterThan(closedAfterMs);
  });

  it('are answered with 405 if they request a tunnel, which is logged and counted', async () => {
    connection.send(request('CONNECT example.com:443'));
    const { status, headers, body } = await connection.answer();
    expect([status, body.error, headers.allow]).toEqual([405, 'method_not_allowed', '']);
    await connection.closed();
    expect(log.entries.map(({ fields }) => fields)).toEqual([
      expect.objectContaining({ method: 'CONNECT', path: 'example.com:443', status_code: 405 }),
    ]);
    const labels = { method: 'other', route: 'other', code: '405' };
    expect((await countsIn(metrics))('http_requests_total')).toMatchObject([{ labels }]);
  });

  it('close the connection if they request a tunnel after an open request, which is logged', async () => {
    connection.send(Buffer.concat([get('/held'), request('CONNECT example.com:443')]));
    await connection.closed();
    await until(() => exchanges.closed.includes('/held'), 'the job to be given up');
    expect(log.entries.map(({ fields }) => fields)).toEqual([expect.objectContaining({ method: 'CONNECT' })]);
  });

  it('are answered after the pending answers', async () => {
    connection.send(Buffer.concat([get('/held', '/2'), Buffer.from(garbage)]));
    const answer = await firstHeld();
    connection.send(garbage);
    answer();
    expect(await nextTexts(2)).toEqual(['/held', '/2']);
    expect(await connection.answer()).toMatchObject({ status: 400, headers: { connection: 'close' } });
    await connection.closed();
    expect(connection.hasMore).toBe(false);
    expect(log.entries).toHaveLength(1);
  });

  it('are answered on a connection that has served a request', async () => {
    connection.send(get('/1'));
    await connection.answer();
    connection.send(garbage);
    expect((await connection.answer()).status).toBe(400);
  });

  it('do not start a waiting request whose body they break', async () => {
    connection.send(Buffer.concat([get('/held'), jsonPost('/body', 'zz\r\n', ['Transfer-Encoding: chunked'])]));
    (await firstHeld())();
    expect([(await connection.answer()).text, (await connection.answer()).status]).toEqual(['/held', 400]);
    await connection.closed();
    expect(exchanges.begun).toEqual(['/held']);
  });
});

describe('A started request', () => {
  it('is answered with 408 and its request id if its body arrives too slowly', async () => {
    connection.send(jsonPost('/body', '{', ['Content-Length: 99']));
    const { status, headers, body } = await connection.answer();
    expect([status, body]).toEqual([408, refusal('the request did not arrive in time', 'of /body')]);
    expect(headers).toMatchObject({ ...commonHeaders, 'x-request-id': 'of /body', connection: 'close' });
    expect(await connection.closed()).toBeGreaterThan(limits.requestMs);
    expect(log.entries).toEqual([]);
  });

  it('may take longer if it is an upload, and not after it', async () => {
    connection.send(jsonPost('/upload', '{', ['Content-Length: 2']));
    using slow = await RawConnection.open(port);
    slow.send(jsonPost('/body', '{', ['Content-Length: 2']));
    expect((await slow.answer()).status).toBe(408);
    connection.send(Buffer.from('}'));
    expect(await nextTexts(1)).toEqual(['/upload']);
    connection.send(jsonPost('/body', '{', ['Content-Length: 2']));
    expect((await connection.answer()).status).toBe(408);
  });

  it('is answered with 400 and its request id if its body is not valid HTTP', async () => {
    connection.send(jsonPost('/body', 'zz\r\n', ['Transfer-Encoding: chunked']));
    const { status, body } = await connection.answer();
    expect([status, body]).toEqual([400, refusal('the request is not valid HTTP', 'of /body')]);
    await connection.closed();
  });

  it('is not reset if it was refused with the last answer while its body arrives', async () => {
    const socket = connect({ port, host: '127.0.0.1' });
    const closed = once(socket, 'close'); // rejects if the socket is reset
    socket.write(jsonPost('/too-large', '', ['Connection: close', `Content-Length: ${largeBytes}`]));
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(answer.toString()).toContain('HTTP/1.1 413');
    socket.write(Buffer.alloc(largeBytes));
    await closed;
  });

  it('gets no second answer if it was refused and its body never arrives', async () => {
    connection.send(jsonPost('/too-large', '', ['Content-Length: 99']));
    expect((await connection.answer()).status).toBe(413);
    await connection.closed();
    expect(connection.hasMore).toBe(false);
  });
});

describe('A stopping server', () => {
  it('closes idle connections at once, and others when their answer has been sent', async () => {
    using idle = await RawConnection.open(port);
    idle.send(get('/1'));
    await idle.answer();
    connection.send(get('/held'));
    const answer = await firstHeld();
    const stopped = server.stop(10_000);
    await idle.closed();
    answer();
    expect(await nextTexts(1)).toEqual(['/held']);
    await connection.closed();
    expect(await stopped).toBe(true);
  });

  it('answers a new connection, and waits half a second for a silent one', async () => {
    using silent = await RawConnection.open(port);
    await until(() => server.size === 2, 'both connections');
    const stopped = server.stop(10_000);
    connection.send(get('/1'));
    expect(await nextTexts(1)).toEqual(['/1']);
    await connection.closed();
    await silent.closed();
    expect(await stopped).toBe(true);
  });

  it('sends a written answer completely, however slowly it is read', async () => {
    const socket = await sendUnread('/large', { port, exchanges });
    const stopped = server.stop(10_000);
    let received = 0;
    socket.on('data', (bytes) => {
      received += bytes.length;
    });
    await once(socket.resume(), 'close');
    expect(received).toBeGreaterThan(largeBytes);
    expect(await stopped).toBe(true);
  });

  it('waits two seconds for requests without a job, and does not count them as cut off', async () => {
    using half = await RawConnection.open(port);
    half.send('POST /body HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nx');
    connection.send(get('/jobless'));
    await firstHeld();
    expect(await server.stop(60_000)).toBe(true);
  });

  it('has closed every exchange when it has stopped, even if the client disconnected', async () => {
    connection.send(get('/held'));
    await firstHeld();
    const closed = server.retire(60_000).then(() => [...exchanges.closed]);
    connection[Symbol.dispose]();
    expect(await closed).toEqual(['/held']);
  });

  it('does not count an answer as cut off if its client reads nothing', async () => {
    await using house = await start({ unreadMs: 60_000 });
    const socket = await sendUnread('/stream', house);
    expect(await house.server.stop(2000)).toBe(true);
    socket.destroy();
  });

  it('reports that it had to cut off an answer at its limit, and can be stopped sooner', async () => {
    connection.send(get('/held'));
    await firstHeld();
    const stopped = server.stop(60_000);
    expect(await server.stop(0)).toBe(false);
    expect(await stopped).toBe(false);
  });
});

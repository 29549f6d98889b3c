import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import { CallbackServer } from '../../../../src/features/acp/callback-server.js';
import type { CallbackRequest, OpenCallback } from '../../../../src/primary/cli/contract/callbacks.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { until } from '../../../support/basics/until.js';

/** Requests that the process of the test receives, and the number of abandoned ones. */
class Asked {
  readonly requests: CallbackRequest[] = [];
  abandoned = 0;
  /** Immediate answer; null: the test answers later. */
  answer: string | null = '{}';

  readonly listener = {
    requested: (request: CallbackRequest) => {
      this.requests.push(request);
      if (this.answer !== null) request.answer(this.answer);
    },
    abandoned: () => void this.abandoned++,
  };
}

const clock = new FakeClock();
let server: CallbackServer;
let asked: Asked;
let callback: OpenCallback;

beforeEach(async () => {
  server = new CallbackServer(clock);
  asked = new Asked();
  callback = await server.open(asked.listener);
});
afterEach(() => server.closePort());

function post(body: string | ReadableStream, more: RequestInit = {}, to: OpenCallback = callback): Promise<Response> {
  return fetch(to.url, { method: 'POST', headers: to.headers, body, duplex: 'half', ...more } as RequestInit);
}

describe('A callback', () => {
  it('receives each post of its process with a new id, and sends the answer', async () => {
    asked.answer = '{"a":1}';
    const answers = await Promise.all([post('one'), post('two')]);
    expect(await Promise.all(answers.map((answer) => answer.json()))).toEqual([{ a: 1 }, { a: 1 }]);
    expect(asked.requests.map(({ body }) => body).toSorted()).toEqual(['one', 'two']);
    expect(new Set(asked.requests.map(({ id }) => id)).size).toBe(2);
    asked.answer = '';
    const taken = await post('three');
    expect([taken.status, await taken.text()]).toEqual([202, '']);
    expect(asked.abandoned).toBe(0);
  });

  it("accepts its secret in the header of Google's clients", async () => {
    const key = (callback.headers.Authorization ?? '').replace('Bearer ', '');
    expect((await post('one', { headers: { 'x-goog-api-key': key } })).status).toBe(200);
    expect((await post('one', { headers: { 'x-goog-api-key': `${key}x` } })).status).toBe(401);
  });

  it('listens on loopback, and answers no request without its secret', async () => {
    expect(new URL(callback.url).hostname).toBe('127.0.0.1');
    const other = await server.open(new Asked().listener);
    expect([other.url, other.headers]).toEqual([callback.url, expect.not.objectContaining(callback.headers)]);
    for (const headers of [{}, { Authorization: 'Bearer ' }, { Authorization: `${callback.headers.Authorization}x` }]) {
      for (const method of ['POST', 'GET', 'DELETE']) {
        const { status } = await fetch(callback.url, { method, headers, body: method === 'POST' ? '{}' : null });
        expect(status).toBe(401);
      }
    }
    await post('mine', {}, other);
    expect(asked.requests).toEqual([]);
  });

  it('accepts only POST requests, and none that is too long', async () => {
    const got = await fetch(callback.url, { headers: callback.headers });
    expect([got.status, got.headers.get('allow')]).toEqual([405, 'POST']);
    const long = 'x'.repeat(4 * 1024 * 1024 + 1);
    expect((await post(long)).status).toBe(413);
    await expect(post(new Blob([long]).stream())).rejects.toThrow();
    expect(asked.requests).toEqual([]);
    expect((await post(long.slice(1))).status).toBe(200);
  });

  it('sends comments until the answer arrives, so that the request stays open', async () => {
    asked.answer = null;
    const answer = await post('call');
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
    const reader = (answer.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
    await clock.advance(60_000);
    expect((await reader.read()).value).toBe(': waits\n\n');
    asked.requests[0]?.answer('{"late":true}');
    asked.requests[0]?.answer('{"twice":true}');
    expect((await reader.read()).value).toBe('event: message\ndata: {"late":true}\n\n');
    expect((await reader.read()).done).toBe(true);
    await until(() => clock.pending === 0, 'the connection to be at rest');
    expect(asked.abandoned).toBe(0);
  });

  it('reports when its process abandons a request before the answer', async () => {
    asked.answer = null;
    const controller = new AbortController();
    await post('call', { signal: controller.signal });
    controller.abort();
    await until(() => asked.abandoned === 1, 'the request to be given up');
    asked.requests[0]?.answer('{}'); // no client receives it
    expect(clock.pending).toBe(0);
  });

  it('is closed with its process: open requests end, and no more are accepted', async () => {
    asked.answer = null;
    const answer = await post('call');
    callback.close();
    await expect(answer.text()).rejects.toThrow();
    expect((await post('again')).status).toBe(401);
    expect(asked.requests).toHaveLength(1);
  });
});

describe('The callback server', () => {
  it('closes a connection that sends no complete request in time', async () => {
    const strict = new CallbackServer(clock, 50);
    const { url, headers } = await strict.open(asked.listener);
    const socket = createConnection({ host: '127.0.0.1', port: Number(new URL(url).port) });
    const head = ['POST / HTTP/1.1', 'Host: x', `Authorization: ${headers.Authorization}`, 'Content-Length: 9'];
    socket.write(`${head.join('\r\n')}\r\n\r\nhalf`);
    socket.resume();
    await once(socket, 'close');
    expect(asked.requests).toEqual([]);
    await strict.closePort();
  });

  it('is reachable despite any number of idle connections', async () => {
    const { hostname, port } = new URL(callback.url);
    const idle: Socket[] = [];
    const closed: Socket[] = [];
    for (let count = 0; count < 2100; count++) {
      const socket = createConnection(Number(port), hostname);
      socket.on('error', () => {}).on('close', () => closed.push(socket));
      idle.push(socket);
      if (count % 100 === 99) await once(socket, 'connect');
    }
    expect((await post('one')).status).toBe(200);
    await until(() => closed.length >= 1600, 'the oldest connections to be closed');
    expect(closed).not.toContain(idle.at(-1));
    for (const socket of idle) socket.destroy();
  });

  it('limits the connections of one process to what it may need', async () => {
    asked.answer = null;
    const answers = await Promise.all(Array.from({ length: 201 }, () => post('call')));
    expect(answers.filter(({ status }) => status === 503)).toHaveLength(1);
    const other = await server.open({ requested: ({ answer }) => answer('{}'), abandoned: () => {} });
    expect((await post('mine', {}, other)).status).toBe(200);
  });

  it('listens only while a process needs it', async () => {
    const idle = new CallbackServer(clock);
    await idle.closePort();
    await server.closePort();
    await expect(post('late')).rejects.toThrow();
  });
});

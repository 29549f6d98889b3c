import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import {
  bodyBytes,
  DrippingBodies,
  type Holder,
  headerOf,
  jsonType,
  keyOf,
  manners,
  writeHolders,
} from '../../support/clients/dripping-bodies.js';
import { chunk, jsonPost, RawConnection, request } from '../../support/clients/raw-http.js';
import { healthTimes } from '../../support/clients/slow-clients.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import { memoryOf } from '../../support/processes/processes.js';
import { type Service, script, startService, startWithProgram, twoWorkers } from '../../support/service/service.js';

const megabyte = 1024 ** 2;

/** Returns a body of 16 MB filled with this unit. */
function filledWith(begin: string, unit: string): Buffer {
  return Buffer.alloc(bodyBytes, begin + unit.repeat(Math.ceil(65_536 / unit.length)));
}

const fields = Buffer.from(`{${Array.from({ length: 1_300_000 }, (_, index) => `"${index}":0`).join(',')}}`);
const tooMany = 'body: must contain at most 50000 values';
const brackets = [
  ['levels', filledWith('', '['), 'body: must be nested at most 200 levels deep'],
  ['empty lists', filledWith('[', '[],'), tooMany],
  ['fields', fields, tooMany],
] as const;
const ofSdks = ['/v1/chat/completions', '/v1/responses', '/v1/messages', '/v1/messages/count_tokens'];
const ofOllama = ['/api/chat', '/api/generate', '/api/show'];
const paths = ['/ask', '/chat', '/mcp', ...ofSdks, ...ofOllama];

/** Returns the time of a slow request: in thirty, one is slower. */
function slowOf(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b).at(-Math.ceil(times.length / 30) - 1) ?? Number.NaN;
}

/**
 * Returns a limit in milliseconds for slow requests during an attack: 1 s, or ten times as much as without the attack,
 * because other programs may keep the machine busy.
 */
async function limitFor(service: Service): Promise<number> {
  return Math.max(1000, 10 * slowOf(await healthTimes(service.url, 30)));
}

describe('A body of brackets and other structure only', () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService({ env: twoWorkers });
  });
  afterAll(() => service.stop());

  const cases = paths.flatMap((path) => brackets.map(([name, body, message]) => [path, name, body, message] as const));

  it.each(cases)('is rejected by %s before the rest arrives: %s', async (path, _name, body, message) => {
    using connection = await RawConnection.open(service.port);
    connection.send(jsonPost(path, body.subarray(0, megabyte), [`Content-Length: ${body.length}`]));
    const { status, text } = await connection.answer();
    expect([status, text]).toEqual([400, expect.stringContaining(message)]);
  });

  it.each(brackets)(
    'is rejected without a Content-Length, and for a background job too: %s',
    async (_name, body, message) => {
      const piece = body.toString('latin1', 0, megabyte);
      for (const header of ['Connection: close', 'Prefer: respond-async']) {
        using connection = await RawConnection.open(service.port);
        connection.send(request('POST /ask', [jsonType, 'Transfer-Encoding: chunked', header], chunk(piece)));
        const { status, text } = await connection.answer();
        expect([status, text]).toEqual([400, expect.stringContaining(message)]);
      }
    },
  );

  it('is accepted as a prompt if it is inside a string', async () => {
    const prompt = '[[],{"\\"0":0,'.repeat(100_000);
    expect((await service.post('/ask', { prompt })).status).toBe(200);
  });

  it('slows down no other client, crashes no worker and needs little memory, on 32 connections', async () => {
    const workers = await service.workers();
    const slowMs = await limitFor(service);
    const attack = brackets.flatMap(([, body]) => Array.from({ length: 32 }, () => sendAll(service, body)));
    const times = await healthTimes(service.url, 60);
    await Promise.all(attack);
    expect(slowOf(times)).toBeLessThan(slowMs); // it was 12 s
    expect(await service.workers()).toEqual(workers); // a worker that answers nothing for 10 s is killed
    const peaks = await Promise.all(workers.map(memoryOf));
    expect(peaks.reduce((sum, { peakBytes }) => sum + peakBytes, 0)).toBeLessThan(1024 * megabyte);
  });
});

/** Resolves when the service has closed the connection or received the whole body. */
async function sendAll(service: Service, body: Buffer): Promise<void> {
  using connection = await RawConnection.open(service.port);
  connection.send(jsonPost('/ask', body, ['Connection: close']));
  await connection.closed(60_000);
}

describe('A body in pieces of one byte', () => {
  it('needs little more memory than its size, and does not delay other requests', async () => {
    await using service = await startService();
    const slowMs = await limitFor(service);
    const [worker] = (await service.workers()) as [number];
    const before = (await memoryOf(worker)).bytes;
    const pieces = Buffer.from(chunk(' ').repeat(500_000));
    const connections = await Promise.all(Array.from({ length: 2 }, () => RawConnection.open(service.port)));
    for (const connection of connections) {
      connection.send(request('POST /ask', [jsonType, 'Transfer-Encoding: chunked']));
      connection.send(pieces);
      connection.send(chunk('{"prompt":"hello"}') + chunk(''));
    }
    const times = await healthTimes(service.url, 30);
    expect(slowOf(times)).toBeLessThan(slowMs);
    for (const connection of connections) {
      expect((await connection.answer({ withinMs: 60_000 })).status).toBe(200);
      connection[Symbol.dispose]();
    }
    expect((await memoryOf(worker)).peakBytes - before).toBeLessThan(200 * megabyte); // it was 450 MB
  }, 90_000);

  it('does not delay other requests, however many clients send one and disconnect', async () => {
    await using service = await startService();
    const slowMs = await limitFor(service);
    const pieces = request('POST /ask', [jsonType, 'Transfer-Encoding: chunked'], chunk(' ').repeat(500_000));
    const connections = await Promise.all(Array.from({ length: 100 }, () => RawConnection.open(service.port)));
    for (const connection of connections) {
      connection.send(pieces);
      connection.endInput();
    }
    const times = await healthTimes(service.url, 300);
    expect(slowOf(times)).toBeLessThan(slowMs); // it was 2 s
    for (const connection of connections) connection[Symbol.dispose]();
  }, 120_000);

  it('for an unknown path does not delay other requests, and its connection stays usable', async () => {
    await using service = await startService();
    const slowMs = await limitFor(service);
    const connections = await Promise.all(Array.from({ length: 8 }, () => RawConnection.open(service.port)));
    for (const connection of connections) {
      connection.send(request('POST /nowhere', [jsonType, 'Transfer-Encoding: chunked']));
      connection.send(chunk(' ').repeat(connection === connections[0] ? 50_000 : 500_000) + chunk(''));
    }
    const times = await healthTimes(service.url, 30);
    expect(slowOf(times)).toBeLessThan(slowMs); // it was 4 s
    const [first] = connections;
    expect((await first?.answer())?.status).toBe(404);
    first?.send(request('GET /version'));
    expect((await first?.answer({ withinMs: 60_000 }))?.status).toBe(200);
    for (const connection of connections) connection[Symbol.dispose]();
  }, 90_000);
});

const filling = 9;

/** Resolves when the memory for such bodies in the worker is full. */
async function untilFull(service: Service, before: number): Promise<void> {
  const [worker] = (await service.workers()) as [number];
  await until(async () => (await memoryOf(worker)).bytes - before > 90 * megabyte, 'the bodies');
}

/** Returns the milliseconds until a prompt of this length was answered. */
async function timeOf(service: Service, name: Holder, length: number, isChunked = false): Promise<number> {
  const body = JSON.stringify({ prompt: 'x'.repeat(length), nothing: true });
  const from = performance.now();
  using connection = await RawConnection.open(service.port);
  const headers = [headerOf(name), ...(isChunked ? ['Transfer-Encoding: chunked'] : [])];
  connection.send(jsonPost('/ask', isChunked ? chunk(body) + chunk('') : body, headers));
  expect((await connection.answer({ withinMs: 40_000 })).status).toBe(400); // the body was read to its end
  return performance.now() - from;
}

/** The documented limit is one second on a quiet machine (`npm run bench -- hostile-bodies`). It was 30 s. */
const limitMs = 4000;

describe('Slowly sent bodies', () => {
  let folder: TemporaryFolder;
  let service: Service;
  let before: number;
  beforeEach(async () => {
    folder = await temporaryFolder();
    service = await startService({ env: await writeHolders(folder) });
    const [worker] = (await service.workers()) as [number];
    before = (await memoryOf(worker)).bytes;
  });
  afterEach(async () => {
    await service.stop();
    await folder[Symbol.asyncDispose]();
  });

  it.each(Object.entries(manners))('do not delay the prompts of another client: %s', async (_, manner) => {
    using drips = new DrippingBodies(service.port, filling, () => [headerOf('greedy'), ...manner]);
    await untilFull(service, before);
    for (const length of [20_000, 200_000, 2 * megabyte]) {
      expect(await timeOf(service, 'modest', length)).toBeLessThan(limitMs);
      expect(await timeOf(service, 'modest', length, true)).toBeLessThan(limitMs);
    }
    await until(() => drips.statuses.length > 0, 'one of them to be given up');
    expect(drips.statuses.every((status) => status === '408' || status === '429')).toBe(true);
  });

  it('of one key count as one client, even with different sub-client names', async () => {
    const named = (index: number) => [headerOf('app'), `X-OpenWebUI-User-Id: user-${index}`];
    using _drips = new DrippingBodies(
      service.port,
      filling,
      (index) => [...named(index), `Content-Length: ${bodyBytes}`],
      '/v1/chat/completions',
    );
    await untilFull(service, before);
    using modest = await RawConnection.open(service.port);
    modest.send(request('POST /ask', [jsonType, headerOf('modest'), `Content-Length: ${bodyBytes}`]));
    let sent = 0;
    const send = (count: number) => {
      modest.send(Buffer.alloc(count, ' '));
      sent += count;
    };
    send(8 * megabyte);
    using another = await RawConnection.open(service.port);
    another.send(request('POST /v1/chat/completions', [jsonType, ...named(99), `Content-Length: ${2 * megabyte}`]));
    another.send(Buffer.alloc(2 * megabyte, ' '));
    const rest = '{"prompt":"hello"}';
    send(bodyBytes - sent - rest.length);
    modest.send(rest);
    expect((await modest.answer()).status).toBe(200); // not evicted for a client that uses more
    expect((await another.answer()).status).toBe(400); // its memory came from bodies of the same client
  });

  it('are not dropped while there is enough memory', async () => {
    using drips = new DrippingBodies(service.port, filling, () => [headerOf('greedy'), `Content-Length: ${bodyBytes}`]);
    await untilFull(service, before);
    expect(await timeOf(service, 'modest', 20_000)).toBeLessThan(limitMs);
    expect(drips.statuses.filter((status) => status === '429')).toEqual([]);
  });
});

describe('A complete body', () => {
  it('is not dropped while its job waits, even if memory is short', async () => {
    await using folder = await temporaryFolder();
    const gate = join(folder.path, 'gate');
    const program = script('takes-turns.pl', join(folder.path, 'order'), gate);
    const env = { ...(await writeHolders(folder)), MODEL_API_MAX_CONCURRENT: '1' };
    await using service = await startWithProgram(program, env);
    const [worker] = (await service.workers()) as [number];
    const before = (await memoryOf(worker)).bytes;
    const asks = ['first', 'x'.repeat(megabyte)].map((prompt) =>
      service.post('/ask', { prompt }, { 'x-api-key': keyOf('modest') }),
    );
    await untilJobs(service, 1, 1);
    using drips = new DrippingBodies(service.port, filling, () => [headerOf('greedy'), `Content-Length: ${bodyBytes}`]);
    await untilFull(service, before);
    await until(() => drips.statuses.includes('408'), 'those that drip to be given up'); // they wait for each other
    await writeFile(gate, '');
    expect((await Promise.all(asks)).map(({ status }) => status)).toEqual([200, 200]);
  });
});

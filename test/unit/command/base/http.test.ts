import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { readEvents, type ServerEvent, send } from '../../../../src/command/base/http.js';

const idleTimeoutMs = 100;

describe('An HTTP request', () => {
  it.each<[string, string | null]>([
    ['no response arrives', null],
    ['a response stops halfway', 'a half'],
  ])('times out when %s', async (_when, start) => {
    const server = createServer((_request, response) => {
      if (start !== null) response.writeHead(200, { 'Content-Length': 99 }).write(start);
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const response = send({ method: 'GET', url, headers: {}, body: undefined, idleTimeoutMs, signal: undefined });
    await expect(response.then(text)).rejects.toThrow('no data for 0.1 s');
    server.close().closeAllConnections();
  });
});

async function* pieces(...chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
}

async function read(...chunks: readonly Uint8Array[]): Promise<ServerEvent[]> {
  const events: ServerEvent[] = [];
  for await (const event of readEvents(pieces(...chunks))) events.push(event);
  return events;
}

const bytes = (text: string) => new TextEncoder().encode(text);

const stream = bytes(
  'event: queued\ndata: {"position":1}\n\n: ping\n\nevent: delta\r\ndata: {"text":"žluťoučký 🐎"}\r\n\r\ndata:first\rdata: second\r\rid: 7\ndata\n\ndata: x\n\n',
);
const expected: ServerEvent[] = [
  { event: 'queued', data: '{"position":1}' },
  { event: 'delta', data: '{"text":"žluťoučký 🐎"}' },
  { event: 'message', data: 'first\nsecond' },
  { event: 'message', data: '', id: '7' },
  { event: 'message', data: 'x', id: '7' },
];

describe('The parser of server-sent events', () => {
  it('accepts every kind of line end, comments, fields without a value and unknown fields', async () => {
    expect(await read(stream)).toEqual(expected);
  });

  it('yields the same events wherever the stream is split in two, and byte by byte', async () => {
    for (let at = 0; at <= stream.length; at++)
      expect(await read(stream.subarray(0, at), stream.subarray(at))).toEqual(expected);
    expect(await read(...Array.from(stream, (_, at) => stream.subarray(at, at + 1)))).toEqual(expected);
  });

  it('drops an unfinished event at the end of the stream', async () => {
    expect(await read(bytes('data: whole\n\ndata: half\n'))).toEqual([{ event: 'message', data: 'whole' }]);
  });

  it('parses a line of eight megabytes without slowing down', async () => {
    const chunk = bytes('x'.repeat(64 * 1024));
    const events = await read(bytes('data: '), ...Array.from({ length: 128 }, () => chunk), bytes('\n\n'));
    expect(events[0]?.data).toHaveLength(8 * 1024 * 1024);
  });
});

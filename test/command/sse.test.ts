import { eventsOf, type ServerEvent } from '../../src/command/sse.js';

async function* pieces(...chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
}

async function read(...chunks: readonly Uint8Array[]): Promise<ServerEvent[]> {
  const events: ServerEvent[] = [];
  for await (const event of eventsOf(pieces(...chunks))) events.push(event);
  return events;
}

const bytes = (text: string) => new TextEncoder().encode(text);

const stream = bytes(
  'event: queued\ndata: {"position":1}\n\n: ping\n\nevent: delta\r\ndata: {"text":"žluťoučký 🐎"}\r\n\r\ndata:first\rdata: second\r\rid: 7\ndata\n\n',
);
const expected: ServerEvent[] = [
  { event: 'queued', data: '{"position":1}' },
  { event: 'delta', data: '{"text":"žluťoučký 🐎"}' },
  { event: 'message', data: 'first\nsecond' },
  { event: 'message', data: '' },
];

describe('the reader of server-sent events', () => {
  it('reads every kind of line end, comments, fields without a value and unknown ones', async () => {
    expect(await read(stream)).toEqual(expected);
  });

  it('reads the same wherever the stream is cut in two', async () => {
    for (let at = 0; at <= stream.length; at++) {
      expect(await read(stream.subarray(0, at), stream.subarray(at))).toEqual(expected);
    }
  });

  it('reads the same byte by byte', async () => {
    expect(await read(...Array.from(stream, (_, at) => stream.subarray(at, at + 1)))).toEqual(expected);
  });

  it('drops an event that the end of the stream cuts short', async () => {
    expect(await read(bytes('data: whole\n\ndata: half\n'))).toEqual([{ event: 'message', data: 'whole' }]);
  });

  it('takes eight megabytes in one line without slowing down', async () => {
    const chunk = bytes('x'.repeat(64 * 1024));
    const events = await read(bytes('data: '), ...Array.from({ length: 128 }, () => chunk), bytes('\n\n'));
    expect(events[0]?.data).toHaveLength(8 * 1024 * 1024);
  });
});

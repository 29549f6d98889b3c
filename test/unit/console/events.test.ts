import { consolePart } from '../../support/clients/console-parts.js';

interface StreamEvent {
  readonly event: string;
  readonly data: string;
  readonly id?: string;
}
interface Events {
  readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamEvent>;
}

const parts = consolePart<Events>('base/api.mjs');

const text =
  '\uFEFF: ping\r\n\r\nevent: queued\ndata: {"position":2}\n\nevent:delta\rdata:a\rdata: b\r\rdata\n\n' +
  'id: 7\nretry: 10\nevent: delta\ndata: Grüße 🙂: "x"\n\nevent: lost\n\ndata: no end\n';
const events: StreamEvent[] = [
  { event: 'queued', data: '{"position":2}' },
  { event: 'delta', data: 'a\nb' },
  { event: 'message', data: '' },
  { event: 'delta', data: 'Grüße 🙂: "x"', id: '7' },
];

function bodyOf(chunks: readonly Uint8Array[], onCancel = () => {}): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start: (controller) => {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
    cancel: onCancel,
  });
}

describe('Server-sent events', () => {
  it('are parsed correctly however their bytes are split, even within a character', async () => {
    const { readEvents } = await parts;
    const bytes = new TextEncoder().encode(text);
    for (let size = 1; size <= bytes.length; size++) {
      const chunks: Uint8Array[] = [];
      for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size));
      const found: StreamEvent[] = [];
      for await (const event of readEvents(bodyOf(chunks))) found.push(event);
      expect([size, found]).toEqual([size, events]);
    }
  });

  it('cancel their response when the reader stops', async () => {
    const { readEvents } = await parts;
    let isCancelled = false;
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new TextEncoder().encode('data: a\n\n')),
      cancel: () => {
        isCancelled = true;
      },
    });
    for await (const { data } of readEvents(endless)) {
      expect(data).toBe('a');
      break;
    }
    expect(isCancelled).toBe(true);
  });
});

import { EventEmitter, getEventListeners } from 'node:events';
import { EventStream } from '../../../../src/worker/http/event-stream.js';
import type { Reply } from '../../../../src/worker/http/exchange.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { settled } from '../../../support/basics/settled.js';

const never = new AbortController().signal;

/** Response whose client accepts data while it has room. */
class FakeReply extends EventEmitter {
  readonly headers: Record<string, string> = {};
  readonly written: string[] = [];
  readonly locals = { recorder: null };
  statusCode = 0;
  headersSent = false;
  isEnded = false;
  hasRoom = true;

  status(code: number): this {
    this.statusCode = code;
    return this;
  }

  set(headers: Record<string, string>): this {
    Object.assign(this.headers, headers);
    return this;
  }

  flushHeaders(): void {
    this.headersSent = true;
  }

  write(text: string): boolean {
    this.written.push(text);
    return this.hasRoom;
  }

  end(): void {
    this.isEnded = true;
  }
}

function open() {
  const reply = new FakeReply();
  const clock = new FakeClock();
  return { reply, clock, stream: new EventStream(reply as unknown as Reply, clock) };
}

describe('An event stream', () => {
  it('sends nothing before it starts, so that a refusal has its status', () => {
    const { reply, clock } = open();
    expect([reply.headersSent, reply.written, clock.pending]).toEqual([false, [], 0]);
  });

  it('starts once, with its headers at once', async () => {
    const { reply, stream } = open();
    stream.beginStream();
    expect([reply.statusCode, reply.headersSent]).toEqual([200, true]);
    expect(reply.headers).toEqual({
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-cache, no-transform',
      'X-Accel-Buffering': 'no',
    });
    reply.status(0);
    await stream.send('started', { queue_ms: 1 }, never);
    expect(reply.statusCode).toBe(0);
  });

  it('writes each event as a name and one line of JSON, whatever it contains', async () => {
    const { reply, stream } = open();
    await stream.send('delta', { text: 'one\ntwo\r\n\n: no comment\u2028😀' }, never);
    expect(reply.written).toEqual([`event: delta\ndata: {"text":"one\\ntwo\\r\\n\\n: no comment\u2028😀"}\n\n`]);
  });

  it('sends a keep-alive comment every 15 s, from its start to its end', async () => {
    const { reply, clock, stream } = open();
    stream.beginStream();
    await clock.advance(14_999);
    expect(reply.written).toEqual([]);
    await clock.advance(1);
    expect(reply.written).toEqual([': ping\n\n']);
    await clock.advance(30_000);
    expect(reply.written).toHaveLength(3);
    stream.end();
    stream[Symbol.dispose]();
    await clock.advance(60_000);
    expect([reply.written.length, reply.isEnded, clock.pending]).toEqual([3, true, 0]);
  });

  it('waits for a client whose buffer is full', async () => {
    const { reply, stream } = open();
    reply.hasRoom = false;
    let isSent = false;
    const { signal } = new AbortController();
    void stream.send('delta', { text: 'one' }, signal).then(() => (isSent = true));
    await settled();
    expect(isSent).toBe(false);
    reply.emit('drain');
    await settled();
    expect([isSent, reply.listenerCount('drain'), getEventListeners(signal, 'abort').length]).toEqual([true, 0, 0]);
  });

  it('stops waiting when the client disconnects, and leaves no listener', async () => {
    const { reply, stream } = open();
    reply.hasRoom = false;
    const controller = new AbortController();
    const sent = stream.send('delta', { text: 'one' }, controller.signal);
    await settled();
    controller.abort(new Error('gone'));
    await expect(sent).rejects.toThrow('gone');
    expect(reply.listenerCount('drain')).toBe(0);
    await expect(stream.send('delta', { text: 'two' }, controller.signal)).rejects.toThrow('gone');
    expect(reply.listenerCount('drain')).toBe(0);
  });
});

import { EventEmitter } from 'node:events';
import { isCancelled } from '../../../../src/shared/errors.js';
import type { Reply } from '../../../../src/worker/http/exchange.js';
import { untilGone } from '../../../../src/worker/http/responses.js';

/** A response that is being sent over a socket. */
class FakeReply extends EventEmitter {
  readonly socket = Object.assign(new EventEmitter(), { destroyed: false, readableEnded: false });
  destroyed = false;
  writableFinished = false;
}

function open() {
  const reply = new FakeReply();
  return { reply, watch: () => untilGone(reply as unknown as Reply) };
}

describe('A client', () => {
  it.each<[string, (reply: FakeReply) => void]>([
    ['its response closes', (reply) => reply.emit('close')],
    ['it closes its own half, even if it reads nothing of what is on its way', ({ socket }) => socket.emit('end')],
  ])('counts as disconnected when %s', (_, leave) => {
    const { reply, watch } = open();
    using client = watch();
    expect(client.signal.aborted).toBe(false);
    leave(reply);
    expect(isCancelled(client.signal.reason)).toBe(true);
  });

  it.each<[string, (reply: FakeReply) => void]>([
    ['the response', (reply) => Object.assign(reply, { destroyed: true })],
    ['the socket', ({ socket }) => Object.assign(socket, { destroyed: true })],
    ['its half of the socket', ({ socket }) => Object.assign(socket, { readableEnded: true })],
  ])('counts as disconnected from the start if %s is already closed', (_, leave) => {
    const { reply, watch } = open();
    leave(reply);
    using client = watch();
    expect(client.signal.aborted).toBe(true);
  });

  it('does not count as disconnected once it has its answer', () => {
    const { reply, watch } = open();
    using client = watch();
    reply.writableFinished = true;
    reply.emit('close');
    reply.socket.emit('end');
    expect(client.signal.aborted).toBe(false);
  });

  it('is watched no longer than its request', () => {
    const { reply, watch } = open();
    const client = watch();
    client[Symbol.dispose]();
    expect(reply.listenerCount('close') + reply.socket.listenerCount('end')).toBe(0);
  });
});

import type { Worker } from 'node:cluster';
import { EventEmitter } from 'node:events';
import { channelToPrimary, channelToWorker } from '../../../../src/shared/ipc/cluster-channel.js';
import type { Channel } from '../../../../src/shared/ipc/peer.js';

type Done = (error: Error | null) => void;

/** Process at either end, which records the messages sent to it. */
class FakeProcess extends EventEmitter {
  readonly sent: object[] = [];
  connected = true;

  send(message: object, _handle: undefined, _options: object, done: Done): void {
    this.sent.push(message);
    done(null);
  }
}

class FakeWorker extends EventEmitter {
  readonly process = new FakeProcess();

  isConnected(): boolean {
    return this.process.connected;
  }
}

function sendOn(channel: Channel): Promise<Error | null> {
  return new Promise((resolve) => channel.send({ kind: 'hello' }, resolve));
}

describe('The channel to a worker', () => {
  function open() {
    const worker = new FakeWorker();
    return { worker, channel: channelToWorker(worker as unknown as Worker) };
  }

  it('sends messages, and reports when they have been sent', async () => {
    const { worker, channel } = open();
    expect(await sendOn(channel)).toBeNull();
    expect(worker.process.sent).toEqual([{ kind: 'hello' }]);
  });

  it('fails to send once it has closed', async () => {
    const { worker, channel } = open();
    worker.process.connected = false;
    expect((await sendOn(channel))?.message).toBe('channel closed');
    expect(worker.process.sent).toEqual([]);
  });

  it.each([[['disconnect', 'exit']], [['exit', 'disconnect']], [['exit']], [['disconnect']]])(
    'closes once after %j, and receives nothing more',
    (events) => {
      const { worker, channel } = open();
      const [received, closings]: [unknown[], string[]] = [[], []];
      channel.onMessage((message) => received.push(message));
      channel.onClose(() => closings.push('closed'));
      worker.emit('message', 'first');
      for (const event of events) worker.emit(event);
      worker.emit('message', 'second');
      expect([received, closings]).toEqual([['first'], ['closed']]);
    },
  );
});

describe('The channel to the primary', () => {
  function open() {
    const self = new FakeProcess();
    return { self, channel: channelToPrimary(self as unknown as NodeJS.Process) };
  }

  it('sends and receives', async () => {
    const { self, channel } = open();
    const received: unknown[] = [];
    channel.onMessage((message) => received.push(message));
    self.emit('message', 'first');
    expect(await sendOn(channel)).toBeNull();
    expect([self.sent, received]).toEqual([[{ kind: 'hello' }], ['first']]);
  });

  it('fails to send once it has closed, and reports it once', async () => {
    const { self, channel } = open();
    let closings = 0;
    channel.onClose(() => closings++);
    self.connected = false;
    self.emit('disconnect');
    self.emit('disconnect');
    expect((await sendOn(channel))?.message).toBe('channel closed');
    expect([self.sent, closings]).toEqual([[], 1]);
  });

  it('fails to send in a process that was not forked', async () => {
    const self = Object.assign(new EventEmitter(), { connected: false });
    expect((await sendOn(channelToPrimary(self as unknown as NodeJS.Process)))?.message).toBe('channel closed');
  });
});

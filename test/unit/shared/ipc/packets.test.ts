import { z } from 'zod';
import { type Channel, type Handlers, Peer } from '../../../../src/shared/ipc/peer.js';
import { ChannelPair } from '../../../support/jobs/channel-pair.js';

const megabyte = 1024 ** 2;
/** Maximum packet size. The channel throws beyond it, as V8 does for a text of more than 512 MiB. */
const maxPacketUnits = megabyte;

const calls = {
  echo: { request: z.object({ texts: z.array(z.string()) }), answer: z.object({ texts: z.array(z.string()) }) },
  repeat: { request: z.object({ text: z.string(), count: z.int() }), item: z.string() },
  short: { request: z.object({}), answer: z.object({}) },
  odd: { request: z.object({}), answer: z.object({ value: z.unknown() }) },
};

const handlers: Handlers<typeof calls> = {
  echo: ({ texts }) => ({ texts }),
  async *repeat({ text, count }) {
    for (let sent = 0; sent < count; sent++) yield `${sent}${text}`;
  },
  short: () => ({}),
  odd: () => ({ value: 10n }),
};

function connect() {
  const pair = new ChannelPair();
  const sizes: number[] = [];
  const faults: unknown[] = [];
  const measured = (end: Channel): Channel => ({
    send: (packet, done) => {
      const units = JSON.stringify(packet).length;
      if (units > maxPacketUnits) throw new RangeError('Invalid string length');
      sizes.push(units);
      end.send(packet, done);
    },
    onMessage: (listener) => end.onMessage(listener),
    onClose: (listener) => end.onClose(listener),
  });
  const onFault = (fault: unknown) => faults.push(fault);
  const [left, right] = [measured(pair.left), measured(pair.right)].map(
    (end) => new Peer(end, calls, calls, handlers, onFault),
  ) as [Peer<typeof calls, typeof calls>, Peer<typeof calls, typeof calls>];
  return { left, right, sizes, faults };
}

describe('Packets between worker and primary', () => {
  it('are small, however many large answers are sent in one turn of the event loop', async () => {
    const { left, sizes, faults } = connect();
    const texts = ['x'.repeat(2 * megabyte)];
    const answers = await Promise.all(Array.from({ length: 20 }, () => left.call('echo', { texts })));
    expect(answers.every((answer) => answer.texts[0] === texts[0])).toBe(true);
    expect(Math.max(...sizes)).toBeLessThan(maxPacketUnits);
    expect(faults).toEqual([]);
  });

  it('transfer each text of a long message to its place', async () => {
    const { left } = connect();
    const texts = ['', 'é'.repeat(300_000), 'short', '\u{1f600}'.repeat(300_000), 'y'.repeat(2000)];
    expect(await left.call('echo', { texts })).toEqual({ texts });
  });

  it('are small, however many short texts a message has', async () => {
    const { left, sizes, faults } = connect();
    const texts = Array.from({ length: 5000 }, (_, index) => `${index} ${'x'.repeat(900)}`);
    expect(await left.call('echo', { texts })).toEqual({ texts });
    expect(Math.max(...sizes)).toBeLessThan(maxPacketUnits);
    expect(faults).toEqual([]);
  });

  it('transfer the items of a stream in order, including long ones', async () => {
    const { left } = connect();
    const items: string[] = [];
    for await (const item of left.stream('repeat', { text: 'x'.repeat(megabyte), count: 20 })) items.push(item);
    expect(items.map((item) => Number.parseInt(item, 10))).toEqual(Array.from({ length: 20 }, (_, index) => index));
    expect(items.every((item) => item.length > megabyte)).toBe(true);
  });

  it('transfer a short message before the rest of a long one', async () => {
    const { left } = connect();
    const order: string[] = [];
    const long = left.call('echo', { texts: ['x'.repeat(4 * megabyte)] }).then(() => order.push('long'));
    await left.call('short', {});
    order.push('short');
    await long;
    expect(order).toEqual(['short', 'long']);
  });

  it('fail only the call whose message cannot be serialized', async () => {
    const { left, faults } = connect();
    const failed = [left.call('odd', {}), left.call('echo', { texts: [10n as unknown as string] })];
    const others = [left.call('short', {}), left.call('echo', { texts: ['hello'] })];
    for (const call of failed) await expect(call).rejects.toMatchObject({ code: 'internal_error' });
    expect(await Promise.all(others)).toEqual([{}, { texts: ['hello'] }]);
    expect(faults).toHaveLength(2);
  });

  it('fail only the call whose message has too many short texts', async () => {
    const { left } = connect();
    const texts = Array.from({ length: 50_000 }, () => 'x'.repeat(1000));
    await expect(left.call('echo', { texts })).rejects.toMatchObject({ code: 'internal_error' });
    expect(await left.call('short', {})).toEqual({});
  });
});

import { RedisRemovals } from '../../../../src/features/redis/redis-removals.js';
import { withResolvers } from '../../../../src/shared/async.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { settled } from '../../../support/basics/settled.js';

/** Hosts with one channel. A host without `begin` gets messages and does not answer. */
class Channel {
  readonly clock = new FakeClock();
  readonly #hosts: { onOther: (what: string, id: string, text: string) => void }[] = [];

  join(): RedisRemovals {
    const host = { onOther: () => {}, publish: (message: string) => this.publish(message) };
    this.#hosts.push(host);
    return new RedisRemovals(host, this.clock);
  }

  joinSilently(): void {
    this.#hosts.push({ onOther: () => {} });
  }

  async publish(message: string): Promise<number> {
    const [what = '', id = '', ...words] = message.split(' ');
    await settled();
    for (const host of this.#hosts) host.onOther(what, id, words.join(' '));
    return this.#hosts.length;
  }
}

/** Records the removals of a host. */
function listening(removals: RedisRemovals, ready: Promise<void> = Promise.resolve()) {
  const open: string[] = [];
  removals.listen(async (client) => {
    open.push(client);
    await ready;
    return { [Symbol.dispose]: () => void open.splice(open.indexOf(client), 1) };
  });
  return open;
}

describe('A removal on several hosts', () => {
  it('begins when all others have confirmed, and ends on all', async () => {
    const channel = new Channel();
    const [north, south] = [channel.join(), channel.join()];
    const slow = withResolvers<void>();
    const [own, other] = [listening(north), listening(south, slow.promise)];
    let hasBegun = false;
    const beginning = north.beginRemoval('key app').then((removal) => {
      hasBegun = true;
      return removal;
    });
    await settled();
    expect([own, other, hasBegun]).toEqual([[], ['key app'], false]);
    slow.resolve();
    const removal = await beginning;
    removal[Symbol.dispose]();
    await settled();
    expect(other).toEqual([]);
  });

  it('ignores a message about a client of an unknown kind', async () => {
    const channel = new Channel();
    const open = listening(channel.join());
    for (const client of ['ada', '', 'robot 7']) await channel.publish(`removal-begins r1 ${client}`);
    expect(open).toEqual([]);
    await channel.publish('removal-begins r2 key ada');
    expect(open).toEqual(['key ada']);
  });

  it('is refused if a host does not confirm in time, and then ends on the others', async () => {
    const channel = new Channel();
    const [north, south] = [channel.join(), channel.join()];
    const other = listening(south);
    channel.joinSilently();
    const refused = expect(north.beginRemoval('key app')).rejects.toMatchObject({ code: 'store_unavailable' });
    await settled();
    expect(other).toEqual(['key app']);
    await channel.clock.advance(15_000);
    await refused;
    await settled();
    expect(other).toEqual([]);
  });

  it('ends after a while if the host that has begun it dies', async () => {
    const channel = new Channel();
    const [north, south] = [channel.join(), channel.join()];
    const other = listening(south);
    await north.beginRemoval('key app');
    expect(other).toEqual(['key app']);
    await channel.clock.advance(300_000);
    expect(other).toEqual([]);
  });
});

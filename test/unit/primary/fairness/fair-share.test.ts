import { FairShare, type Sharer } from '../../../../src/primary/fairness/fair-share.js';
import { holderOf } from '../../../../src/shared/client.js';
import { randomNumbers } from '../../../support/random.js';

const clients = ['key app', 'key app/ada', 'key app/bob', 'key other', 'user ada'];

/** Adds and removes members at random, and keeps a plain list of the current ones. */
function crowd(steps: number, seed: number, check: (share: FairShare<Sharer>, there: readonly Sharer[]) => void) {
  const random = randomNumbers(seed);
  const share = new FairShare<Sharer>();
  const there: Sharer[] = [];
  for (let at = 0; at < steps; at++) {
    if (there.length < 3 || random() < 0.6) {
      const client = clients[Math.floor(random() * clients.length)] ?? '';
      const member = { client, bytes: Math.floor(random() * 5) };
      share.add(member, at);
      there.push(member);
    } else {
      const [member] = there.splice(Math.floor(random() * there.length), 1);
      if (member !== undefined) expect([share.remove(member), share.remove(member)]).toEqual([true, false]);
    }
    check(share, there);
  }
}

function amountOf(members: readonly Sharer[]) {
  return { count: members.length, bytes: members.reduce((sum, { bytes }) => sum + bytes, 0) };
}

/** Returns the name with the most bytes; among equal ones, the name with the oldest member. */
function greediestOf(members: readonly Sharer[], nameOf: (client: string) => string): string | undefined {
  const names = [...new Set(members.map(({ client }) => nameOf(client)))];
  const bytesOf = (name: string) => amountOf(members.filter(({ client }) => nameOf(client) === name)).bytes;
  return names.reduce<string | undefined>(
    (most, name) => (most === undefined || bytesOf(name) > bytesOf(most) ? name : most),
    undefined,
  );
}

describe('A share', () => {
  it('counts the total, each holder and each user in the same way as a plain list', () => {
    crowd(500, 1, (share, there) => {
      const { count, bytes } = share;
      expect({ count, bytes }).toEqual(amountOf(there));
      for (const client of clients) {
        const own = there.filter((member) => member.client === client);
        const ofHolder = there.filter((member) => holderOf(member.client) === holderOf(client));
        const held = share.of(client);
        expect({ count: held.count, bytes: held.bytes }).toEqual(amountOf(ofHolder));
        expect([...held]).toEqual(ofHolder);
        expect(held.amountOf(client)).toMatchObject(amountOf(own));
        expect(held.names.find((name) => name.client === client)?.oldest).toBe(own[0]);
      }
    });
  });

  it('names the holder with the most, and the oldest member of its largest user', () => {
    crowd(500, 2, (share, there) => {
      const holder = greediestOf(there, holderOf);
      const ofHolder = there.filter(({ client }) => holderOf(client) === holder);
      const name = greediestOf(ofHolder, (client) => client);
      expect(share.greediest?.oldest).toBe(ofHolder[0]);
      expect(share.greediest?.oldestOfGreediest).toBe(ofHolder.find(({ client }) => client === name));
    });
  });

  it('reports since when each user has had members', () => {
    const share = new FairShare<Sharer>();
    const [first, second] = [1, 2].map((bytes) => ({ client: 'user ada', bytes }));
    for (const [at, member] of [first, second].entries()) if (member !== undefined) share.add(member, at + 5);
    expect(share.of('user ada').names).toEqual([
      { client: 'user ada', count: 2, bytes: 3, oldest: first, oldestAt: 5 },
    ]);
  });

  it('releases the newest member of the largest user first, one at a time', () => {
    const share = new FairShare<Sharer>();
    const members = ['key app', 'key app/ada', 'key app/ada', 'key app'].map((client, bytes) => ({ client, bytes }));
    for (const member of members) share.add(member, 0);
    expect([...share.of('key app').newest()].map(({ bytes }) => bytes)).toEqual([3, 2, 1, 0]);
    const mayGive = (client: string, { count }: { readonly count: number }) => client === 'key app' || count > 1;
    expect([...share.of('key app').newest(mayGive)].map(({ bytes }) => bytes)).toEqual([3, 2, 0]);
  });
});

describe('The other clients', () => {
  it('do not exist for a client that is alone', () => {
    const share = new FairShare<Sharer>();
    for (const atMs of [1, 2, 3]) share.saw('user ada', atMs);
    expect(share.hasOthersThan('user ada', 5, 1_000_000)).toBe(false);
    expect([3, 2].map((withinMs) => share.hasOthersThan('user bob', 5, withinMs))).toEqual([true, false]);
  });

  it('are those seen within a time, in the same way as in a full list', () => {
    const random = randomNumbers(7);
    const share = new FairShare<Sharer>();
    const seen = new Map<string, number>();
    for (let nowMs = 0; nowMs < 2000; nowMs++) {
      const client = `client ${Math.floor(random() * 4)}`;
      share.saw(client, nowMs);
      seen.set(client, nowMs);
      for (const asked of ['client 0', 'client 1', 'a stranger']) {
        const others = [...seen].filter(([name]) => name !== asked).map(([, atMs]) => atMs);
        const sinceMs = nowMs - Math.max(...others);
        const within = [sinceMs, sinceMs + 1].map((withinMs) => share.hasOthersThan(asked, nowMs, withinMs));
        expect(within).toEqual([false, others.length > 0]);
      }
    }
  });

  it('include clients with members, and the users of one key count as others to each other', () => {
    const share = new FairShare<Sharer>();
    const member = { client: 'key app/ada', bytes: 1 };
    share.saw('key app/ada', 0);
    share.add(member, 0);
    const areThere = () => [
      share.hasOthersThan('key app', 5, 1),
      share.hasOthersThan('user bob', 5, 1),
      share.of('key app').hasOthersThan('key app/ada', 5, 1),
      share.of('key app').hasOthersThan('key app/bob', 5, 1),
    ];
    expect(areThere()).toEqual([false, true, false, true]);
    share.remove(member);
    expect(areThere()).toEqual([false, false, false, false]);
    expect(share.of('key app').hasNames).toBe(true);
  });
});

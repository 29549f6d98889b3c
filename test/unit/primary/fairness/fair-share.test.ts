import { FairShare, type Sharer } from '../../../../src/primary/fairness/fair-share.js';
import { type ClientText, holderOf } from '../../../../src/shared/client.js';
import { randomNumbers } from '../../../support/basics/random.js';

const clients = ['key app', 'key app/ada', 'key app/bob', 'key other', 'user ada'] as const;

/** Adds and removes members at random, and checks the share against a plain list of the current ones. */
function compareWithList(seed: number, check: (share: FairShare<Sharer>, members: readonly Sharer[]) => void) {
  const random = randomNumbers(seed);
  const share = new FairShare<Sharer>();
  const members: Sharer[] = [];
  for (let at = 0; at < 500; at++) {
    if (members.length < 3 || random() < 0.6) {
      const client = clients[Math.floor(random() * clients.length)] ?? 'key app';
      const member = { client, bytes: 1 + Math.floor(random() * 5) };
      share.addMember(member, at);
      members.push(member);
    } else {
      const [member] = members.splice(Math.floor(random() * members.length), 1);
      if (member !== undefined) expect([share.removeMember(member), share.removeMember(member)]).toEqual([true, false]);
    }
    check(share, members);
  }
}

function amountOf(members: readonly Sharer[]) {
  return { count: members.length, bytes: members.reduce((sum, { bytes }) => sum + bytes, 0) };
}

describe('A share', () => {
  it('counts the total, each holder and each user in the same way as a plain list', () => {
    compareWithList(1, (share, members) => {
      const { count, bytes } = share;
      expect({ count, bytes }).toEqual(amountOf(members));
      for (const client of clients) {
        const own = members.filter((member) => member.client === client);
        const keyMembers = members.filter((member) => holderOf(member.client) === holderOf(client));
        expect(share.holderShare(client)).toMatchObject(amountOf(keyMembers));
        const ownShare = share.clientShare(client);
        expect({ count: ownShare.count, bytes: ownShare.bytes }).toEqual(amountOf(own));
        expect([...ownShare]).toEqual(own);
        expect(share.clients.find((each) => each.client === client)?.oldest?.member).toBe(own[0]);
      }
    });
  });

  it('evicts the oldest item of the largest holder, or of its largest user', () => {
    compareWithList(2, (share, members) => {
      const victim = share.pickVictim({ byUser: true });
      const { client } = victim as Sharer;
      const bytesOf = (isIncluded: (each: ClientText) => boolean) =>
        amountOf(members.filter((member) => isIncluded(member.client))).bytes;
      const holderBytes = clients.map((each) => bytesOf((other) => holderOf(other) === holderOf(each)));
      expect(bytesOf((other) => holderOf(other) === holderOf(client))).toBe(Math.max(...holderBytes));
      const users = clients.filter((each) => holderOf(each) === holderOf(client));
      expect(bytesOf((other) => other === client)).toBe(
        Math.max(...users.map((each) => bytesOf((other) => other === each))),
      );
      expect(victim).toBe(members.find((member) => member.client === client));
      const oldest = members.find((member) => holderOf(member.client) === holderOf(client));
      expect(share.pickVictim({ byUser: false })).toBe(oldest);
    });
  });

  it('reports when the oldest item of a client arrived, and evicts nothing if it is empty', () => {
    const share = new FairShare<Sharer>();
    const members = [1, 2].map((bytes) => ({ client: 'user ada', bytes }) as const);
    for (const [at, member] of members.entries()) share.addMember(member, at + 5);
    expect(share.clients.map(({ oldest }) => oldest)).toEqual([{ member: members[0], at: 5 }]);
    for (const member of members) share.removeMember(member);
    expect([share.pickVictim({ byUser: true }), share.clients]).toEqual([undefined, []]);
  });
});

import { type ClientText, holderOf, noClient } from '../../../../src/shared/client.js';
import { type CommonShare, FairQueue, type Member } from '../../../../src/shared/fairness/fair-queue.js';
import { randomNumbers } from '../../../support/basics/random.js';

interface Named<T> extends Member {
  readonly name: T;
}

/** Creates a fair queue of named members. Clients can be suspended. */
function fairQueue<T>(
  weightOf: (holder: ClientText) => number = () => 1,
  shareOf: (client: ClientText) => CommonShare | null = () => null,
) {
  const held = new Set<string>();
  const queue = new FairQueue<Named<T>>({ weightOf, mustWait: (holder) => held.has(holder) });
  const members = new Map<T, Named<T>>();
  const member = (client: ClientText, name: T, lane: string) => {
    members.set(name, { client, name, lane, share: shareOf(client) });
    return members.get(name) as Named<T>;
  };
  return {
    get size() {
      return queue.size;
    },
    [Symbol.iterator]: () => [...queue].map(({ name }) => name)[Symbol.iterator](),
    add: (client: ClientText, name: T, lane = '') => queue.add(member(client, name, lane)),
    addFirst: (client: ClientText, name: T, lane = '') => queue.addFirst(member(client, name, lane)),
    takeNext: (mayGo: (name: T) => boolean = () => true) => queue.takeNext(({ name }) => mayGo(name))?.name ?? null,
    remove: (name: T) => queue.remove(members.get(name) as Named<T>),
    positionOf: (name: T) => queue.positionOf(members.get(name) as Named<T>),
    hold: (client: ClientText) => void held.add(holderOf(client)),
    resume: (client: ClientText) => {
      const wasHeld = held.delete(holderOf(client));
      if (wasHeld) queue.toEnd({ client, lane: '', name: null as T, share: shareOf(client) });
      return wasHeld;
    },
  };
}

type Order<T> = ReturnType<typeof fairQueue<T>>;

function order(...members: readonly (readonly [client: ClientText, member: string])[]): Order<string> {
  const waiting = fairQueue<string>();
  for (const [client, member] of members) waiting.add(client, member);
  return waiting;
}

function takeAll<T>(waiting: Order<T>, mayGo?: (name: T) => boolean): T[] {
  const taken: T[] = [];
  for (let name = waiting.takeNext(mayGo); name !== null; name = waiting.takeNext(mayGo)) taken.push(name);
  return taken;
}

describe('The fair queue', () => {
  it('alternates between keys, and within one key between its users', () => {
    const names = ['key app/ada', 'key app/bob', 'key app', 'key app/ada', 'key app/eve', 'key app/ada'] as const;
    const waiting = order(...names.map((name, index) => [name, `app ${index}`] as const));
    for (const number of [1, 2, 3]) waiting.add('key other', `other ${number}`);
    const expected = [...waiting];
    const positions = names.map((_, index) => waiting.positionOf(`app ${index}`));
    const taken = takeAll(waiting);
    expect(taken).toEqual(['app 0', 'other 1', 'app 1', 'other 2', 'app 2', 'other 3', 'app 4', 'app 3', 'app 5']);
    expect(expected).toEqual(taken);
    expect(positions).toEqual(names.map((_, index) => taken.indexOf(`app ${index}`) + 1));
  });

  it('suspends all users of a key at once', () => {
    const waiting = order(['key app/ada', 'ada'], ['key app/bob', 'bob'], ['key other', 'other']);
    waiting.hold('key app/eve');
    expect([waiting.takeNext(), waiting.takeNext()]).toEqual(['other', null]);
    expect([waiting.resume('key app'), waiting.resume('key app/ada')]).toEqual([true, false]);
    expect(takeAll(waiting)).toEqual(['ada', 'bob']);
  });

  it.each([1, 2, 3])('agrees with a simple model through random events (seed %d)', (seed) => {
    const random = randomNumbers(seed);
    const waiting = fairQueue<number>();
    const model = new PlainOrder();
    const clients = new Map<number, string>();
    for (let step = 0; step < 3000; step++) {
      const dice = random();
      const client = `user ${Math.floor(random() * 6)}` as const;
      const turn = random();
      if (turn < 0.1) for (const either of [waiting, model]) either.hold(client);
      if (turn > 0.9) for (const either of [waiting, model]) either.resume(client);
      if (dice < 0.5) {
        waiting.add(client, step);
        clients.set(step, client);
        model.add(client, step);
      } else if (dice < 0.75) {
        const taken = waiting.takeNext();
        expect(taken).toBe(model.takeNext());
        if (taken !== null) clients.delete(taken);
      } else {
        const [member, itsClient] = [...clients][Math.floor(random() * clients.size)] ?? [];
        if (member === undefined || itsClient === undefined) continue;
        expect([waiting.remove(member), waiting.remove(member)]).toEqual([true, false]);
        model.remove(member);
        clients.delete(member);
      }
      expect(waiting.size).toBe(clients.size);
    }
    for (let number = 0; number < 6; number++) waiting.resume(`user ${number}`);
    expect(takeAll(waiting)).toHaveLength(clients.size);
  });

  it.each([1, 2, 3])('lists its members in the order in which it serves them, with any weights (seed %d)', (seed) => {
    const random = randomNumbers(seed);
    const share = { name: 'group', weight: () => 2 };
    const weightOf = (holder: ClientText) => (seed === 1 ? 1 : 1 + (Number(holder.at(-1)) % 3));
    const waiting = fairQueue<number>(weightOf, (client) => (seed === 3 && Number(client.at(-1)) > 4 ? share : null));
    const oneOf = (share: number) => `user ${Math.floor(share * 8)}` as const;
    for (let step = 0; step < 400; step++) {
      if (random() < 0.7) waiting.add(oneOf(random() ** 2), step);
      else waiting.takeNext();
      const turn = random();
      if (turn < 0.1) waiting.hold(oneOf(random()));
      if (turn > 0.8) waiting.resume(oneOf(random()));
      if (step % 20 !== 0) continue;
      const listed = [...waiting];
      expect(listed).toHaveLength(waiting.size);
      expect(listed.map(waiting.positionOf)).toEqual(listed.map((_, index) => index + 1));
    }
    for (let number = 0; number < 8; number++) waiting.resume(`user ${number}`);
    const listed = [...waiting];
    expect(listed.length).toBeGreaterThan(50);
    expect(takeAll(waiting)).toEqual(listed);
  });

  it.each([1, 2, 3])('divides turns by weights: among shares and holders, and in each share (seed %d)', (seed) => {
    const random = randomNumbers(seed);
    const weights = new Map<string, number>();
    const shares = [0, 1, 2].map((group) => ({
      name: `group ${group}`,
      weight: () => (group === 0 ? 1 : group + seed),
    }));
    const members = Array.from({ length: 120 }, (_, number) => {
      const share = number < 100 ? shares[0] : shares[number % 6];
      const holder = `key ${number}` as const;
      weights.set(holder, 1 + Math.floor(random() * 3));
      return { holder, share: share ?? null };
    });
    const shareOf = (client: ClientText) => members.find(({ holder }) => holder === holderOf(client))?.share ?? null;
    const waiting = fairQueue<number>((holder) => weights.get(holder) ?? 0, shareOf);
    const owners: ClientText[] = [];
    const add = (client: ClientText) => waiting.add(client, owners.push(client) - 1);
    for (const { holder } of members) for (const user of ['ada', 'bob', 'ada']) add(`${holder}/${user}`);
    const taken = new Map<string, number>();
    const last = new Map<string, number>();
    let longestWait = 0;
    const tops = new Set(members.map(({ holder, share }) => share?.name ?? holder));
    const weightOf = (name: string) => shares.find((each) => each.name === name)?.weight() ?? weights.get(name) ?? 0;
    const round = [...tops].reduce((sum, name) => sum + weightOf(name), 0);
    const turns = round * 2000;
    for (let turn = 0; turn < turns; turn++) {
      const client = owners[waiting.takeNext() ?? -1] ?? noClient;
      const holder = holderOf(client);
      for (const name of [holder, shareOf(client)?.name ?? []].flat()) taken.set(name, (taken.get(name) ?? 0) + 1);
      longestWait = Math.max(longestWait, turn - (last.get(holder) ?? 0));
      last.set(holder, turn);
      add(client);
    }
    for (const name of tops)
      expect(Math.abs((taken.get(name) ?? 0) / (turns / round) / weightOf(name) - 1)).toBeLessThan(0.05);
    const inGroup = members.filter(({ share }) => share === shares[0]).map(({ holder }) => holder);
    const inTurn = inGroup.reduce((sum, holder) => sum + weightOf(holder), 0);
    for (const holder of inGroup)
      expect(Math.abs((taken.get(holder) ?? 0) / (2000 / inTurn) / weightOf(holder) - 1)).toBeLessThan(0.2);
    expect(longestWait).toBeLessThanOrEqual(round * inTurn);
  });

  it('gives a share of 100 active clients half of the turns beside one key, and moves only its clients behind it', () => {
    const share = { name: 'group bio', weight: () => 1 };
    const waiting = fairQueue<string>(undefined, (client) => (client === 'key other' ? null : share));
    for (let number = 0; number < 100; number++) waiting.add(`key bio${number}`, `bio ${number}`);
    for (let number = 0; number < 100; number++) waiting.add('key other', `other ${number}`);
    waiting.hold('key bio0');
    waiting.resume('key bio0');
    const order = takeAll(waiting);
    expect(order.slice(0, 4)).toEqual(['bio 1', 'other 0', 'bio 2', 'other 1']);
    expect(order.filter((name, index) => name.startsWith('bio') && index < 100)).toHaveLength(50);
    expect(order.slice(-2)).toEqual(['bio 0', 'other 99']);
  });

  it('skips a lane whose first member may not leave, and retains its order', () => {
    const waiting = fairQueue<string>();
    for (const [index, lane] of ['x', 'x', 'y', 'z'].entries()) waiting.add('key a', `a${index + 1}`, lane);
    waiting.add('key b', 'b1', 'x');
    expect(takeAll(waiting, (name) => name !== 'a1')).toEqual(['a3', 'b1', 'a4']);
    expect(takeAll(waiting)).toEqual(['a1', 'a2']);
  });

  it('can return a member to the front of the line of its client', () => {
    const waiting = order(['key a', 'a1'], ['key a', 'a2'], ['key b', 'b1']);
    const first = waiting.takeNext() ?? '';
    waiting.addFirst('key a', first);
    expect(takeAll(waiting)).toEqual(['b1', 'a1', 'a2']);
  });

  it('gives a key holder as many turns as its weight, however many users it has', () => {
    const waiting = fairQueue<string>((holder) => (holder === 'key app' ? 2 : 1));
    const names = ['key app/ada', 'key app/ada', 'key app/ada', 'key app/bob', 'key b', 'key b', 'key b'] as const;
    for (const [index, name] of names.entries()) waiting.add(name, `${index}`);
    const listed = [...waiting];
    const positions = listed.map(waiting.positionOf);
    expect(takeAll(waiting)).toEqual(['0', '3', '4', '1', '2', '5', '6']);
    expect(listed).toEqual(['0', '3', '4', '1', '2', '5', '6']);
    expect(positions).toEqual([1, 2, 3, 4, 5, 6, 7]);
  });

  it('can be listed in part, and is not changed by that', () => {
    const waiting = order(['key a', 'a1'], ['key a', 'a2'], ['key b', 'b1']);
    const [first, second] = waiting;
    expect([first, second, ...waiting]).toEqual(['a1', 'b1', 'a1', 'b1', 'a2']);
    expect([...fairQueue<string>()]).toEqual([]);
  });

  // If the cost grew with the length of the queue, this would be 10^10 steps and not end in time.
  it('is as good with 200,000 members as with two, taken or removed from anywhere', () => {
    const count = 200_000;
    const clients = 1000;
    const waiting = fairQueue<number>();
    const members = Array.from({ length: count }, (_, member) => member);
    for (const member of members) waiting.add(`user ${member % clients}`, member);
    const removed = members.filter((member) => member % 3 === 0);
    for (const member of removed.toReversed()) waiting.remove(member);
    expect(waiting.size).toBe(count - removed.length);

    const taken = takeAll(waiting);
    expect(taken).toHaveLength(count - removed.length);
    expect(taken.some((member) => member % 3 === 0)).toBe(false);
    expect(isFirstComeFirstServed(taken, clients)).toBe(true);
    expect(new Set(taken.slice(0, clients).map((member) => member % clients)).size).toBe(clients);
  });

  it('handles 200,000 members of one client in time', () => {
    const waiting = fairQueue<number>();
    for (let member = 0; member < 200_000; member++) waiting.add('key one', member);
    expect([...waiting]).toHaveLength(200_000);
    expect(isFirstComeFirstServed(takeAll(waiting), 1)).toBe(true);
  });
});

function isFirstComeFirstServed(taken: readonly number[], clients: number): boolean {
  const last = new Map<number, number>();
  return taken.every((member) => {
    const before = last.get(member % clients) ?? -1;
    last.set(member % clients, member);
    return before < member;
  });
}

/** Reference implementation of the same order, as simple as possible. */
class PlainOrder {
  #lines: { readonly client: ClientText; members: number[] }[] = [];
  readonly #held = new Set<string>();

  hold(client: ClientText): void {
    this.#held.add(client);
  }

  resume(client: ClientText): void {
    if (!this.#held.delete(client)) return;
    const line = this.#lines.find((other) => other.client === client);
    if (line !== undefined) this.#lines = [...this.#lines.filter((other) => other !== line), line];
  }

  add(client: ClientText, member: number): void {
    const line = this.#lines.find((other) => other.client === client);
    if (line === undefined) this.#lines.push({ client, members: [member] });
    else line.members.push(member);
  }

  takeNext(): number | null {
    const line = this.#lines.find(({ client }) => !this.#held.has(client));
    if (line === undefined) return null;
    this.#lines = this.#lines.filter((other) => other !== line);
    const [member = null] = line.members.splice(0, 1);
    if (line.members.length > 0) this.#lines.push(line);
    return member;
  }

  remove(member: number): void {
    for (const line of this.#lines) line.members = line.members.filter((other) => other !== member);
    this.#lines = this.#lines.filter(({ members }) => members.length > 0);
  }
}

import { deepEqual, equal, ok } from 'node:assert/strict';
import { type BoundsOf, noBounds } from '../../../../src/primary/access/clients.js';
import { quarterOf, type Sharer } from '../../../../src/primary/fairness/fair-share.js';
import { QueuePlaces, RecentClients } from '../../../../src/primary/jobs/queue-places.js';
import { type ClientText, holderOf } from '../../../../src/shared/client.js';
import type { RelayError } from '../../../../src/shared/errors.js';
import type { CommonShare } from '../../../../src/shared/fairness/fair-queue.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { randomNumbers } from '../../../support/basics/random.js';

const activeMs = 600_000;

type Waiter = Sharer & { readonly share?: CommonShare | null };

class Harness {
  readonly clock = new FakeClock();
  readonly places: QueuePlaces<Waiter>;
  readonly waiting: Waiter[] = [];
  shareOf: (client: ClientText) => CommonShare | null = () => null;

  constructor(maxWaiting: number, boundsOf: BoundsOf = noBounds, maxWaitingBytes = 1_000_000) {
    this.places = new QueuePlaces<Waiter>({ maxWaiting, maxWaitingBytes }, boundsOf, this.clock);
  }

  /** Requests a place. Returns true, or why the request was refused. */
  request(client: ClientText, bytes = 1): true | string {
    const share = this.shareOf(client);
    const waiter = { client, bytes, share };
    this.places.recordRequest(client, share);
    try {
      this.places.takePlace(waiter);
    } catch (error) {
      expect(error).toMatchObject({ code: 'concurrency_limited' });
      return (error as RelayError).message;
    }
    this.waiting.push(waiter);
    return true;
  }

  /** Requests this many places. Returns how many were granted. */
  requestMany(client: ClientText, count: number): number {
    return Array.from({ length: count }, () => this.request(client)).filter((result) => result === true).length;
  }

  /** Frees the oldest place of a client. */
  leave(client: ClientText): void {
    const index = this.waiting.findIndex((waiter) => waiter.client === client);
    const [waiter] = index < 0 ? [] : this.waiting.splice(index, 1);
    if (waiter !== undefined) this.places.leave(waiter);
  }

  counts(): Record<string, number> {
    return Object.fromEntries(this.places.counts);
  }
}

const full = 'all slots are taken and the queue is full (MODEL_API_MAX_CONCURRENT, MODEL_API_MAX_QUEUE)';
const variables = '(MODEL_API_MAX_QUEUE)';

const users = Array.from({ length: 20 }, (_, number) => `key app/${number}` as const);

describe('A client that is not alone', () => {
  it('gets its share of the places, and the error names the share', () => {
    const harness = new Harness(100);
    harness.request('key b');
    expect(harness.requestMany('key a', 1000)).toBe(25);
    expect(harness.request('key a')).toBe(
      `this client may not wait: it has 25 waiting jobs, and its share is 25 of 100 places of the queue while other clients are active ${variables}`,
    );
    expect(harness.places.refused).toEqual({ full: 0, bound: 976 });
    expect(harness.counts()).toEqual({ 'key a': 25, 'key b': 1 });
  });

  it('gets its share of the bytes, or one job of any size', () => {
    const harness = new Harness(100, noBounds, 1000);
    harness.places.recordRequest('key b');
    expect(harness.request('key a', 600)).toBe(true);
    expect(harness.request('key a', 1)).toBe(
      `this client may not wait: it has 600 bytes of waiting text, and its share is 250 of 1000 bytes of the queue while other clients are active ${variables}`,
    );
    expect([harness.request('key c', 200), harness.request('key c', 50)]).toEqual([true, true]);
    expect(harness.request('key c', 1)).toContain('250 of 1000 bytes');
  });
});

describe('A reserved place', () => {
  const four = ['key a', 'key b', 'key c', 'key d'] as const;

  it('cannot be taken by clients that have one, even within their shares', () => {
    const harness = new Harness(8);
    harness.places.recordRequest('key late');
    for (const client of four) harness.requestMany(client, 2);
    expect(harness.places.taken).toBe(7);
    expect(harness.request('key d')).toBe(
      'all slots are taken and the last place in the queue is reserved for other active clients (MODEL_API_MAX_CONCURRENT, MODEL_API_MAX_QUEUE)',
    );
    expect(harness.places.refused).toEqual({ full: 2, bound: 0 });
    expect(harness.request('key late')).toBe(true);
    expect(harness.request('key another')).toBe(full);
  });

  it('includes the average size of a text', () => {
    const harness = new Harness(10, noBounds, 1000);
    harness.places.recordRequest('key late');
    for (const client of ['key a', 'key b', 'key c'] as const) expect(harness.requestMany(client, 1)).toBe(1);
    for (const client of ['key a', 'key b', 'key c'] as const) expect(harness.request(client, 248)).toBe(true);
    expect([harness.request('key d', 100), harness.request('key d', 54)]).toEqual([
      true,
      expect.stringMatching(/reserved/),
    ]);
    expect(harness.request('key late', 100)).toBe(true);
  });

  it('exists for a quarter of the places at most, however many clients are active', () => {
    const harness = new Harness(8, (client) => ({
      maxRunning: 1,
      maxQueued: client === 'key a' ? 8 : null,
      weight: 1,
    }));
    for (let number = 0; number < 1000; number++) harness.places.recordRequest(`address ${number}`);
    expect(harness.requestMany('key a', 8)).toBe(6);
    expect(harness.request('key a')).toContain('the last 2 places in the queue are reserved');
  });
});

it('A queue without places refuses every job', () => {
  const harness = new Harness(0);
  for (const client of ['key a', 'key b', 'key a', 'key app/ada', 'key app/bob'] as const)
    expect(harness.request(client)).toBe(full);
});

describe('A configured limit of a client', () => {
  const boundsOf: BoundsOf = (client) => ({ maxRunning: 1, maxQueued: client === 'key bound' ? 3 : null, weight: 1 });

  it('applies at any time, also to a client that is alone', () => {
    const harness = new Harness(100, boundsOf);
    expect(harness.requestMany('key bound', 10)).toBe(3);
    expect(harness.request('key bound')).toBe(
      'this client may not wait: it has 3 waiting jobs, and its limit is 3 (the option queue of its key)',
    );
  });
});

describe('A client with a weight', () => {
  const weights: Readonly<Record<string, number>> = { 'key half': 2, 'key heavy': 100 };
  const boundsOf: BoundsOf = (client) => ({ maxRunning: 1, maxQueued: null, weight: weights[client] ?? 1 });

  it('has as many quarters of the queue, in places and in bytes', () => {
    const harness = new Harness(8, boundsOf, 800);
    harness.places.recordRequest('key other');
    expect(harness.requestMany('key half', 8)).toBe(4);
    expect(harness.request('key half')).toContain('its share is 4 of 8 places');
    const large = new Harness(100, boundsOf, 1000);
    large.places.recordRequest('key other');
    for (const bytes of [250, 250]) expect(large.request('key half', bytes)).toBe(true);
    expect(large.request('key half', 1)).toContain('500 of 1000 bytes');
  });

  it('leaves a quarter to the others, however large its weight is', () => {
    const harness = new Harness(8, boundsOf);
    harness.places.recordRequest('key other');
    expect(harness.requestMany('key heavy', 8)).toBe(6);
    expect(harness.requestMany('key other', 8)).toBe(2);
  });
});

describe('The users of one key', () => {
  it('have the share of one client together, and cannot take the place of another client', () => {
    const harness = new Harness(8);
    harness.places.recordRequest('key other');
    expect(users.filter((user) => harness.request(user) === true)).toHaveLength(2);
    expect(harness.request('key app/new')).toBe(
      `this client may not wait: its key has 2 waiting jobs, and its share is 2 of 8 places of the queue while other clients are active ${variables}`,
    );
    expect(harness.requestMany('key other', 3)).toBe(2);
  });
});

describe('The users of one key among themselves', () => {
  const boundsOf: BoundsOf = (client) => ({ maxRunning: 1, maxQueued: client === 'key app' ? 8 : null, weight: 1 });

  it('share the limit of the key', () => {
    const harness = new Harness(100, boundsOf);
    expect(users.slice(0, 8).map((user) => harness.request(user))).toEqual(Array(8).fill(true));
    expect(harness.request('key app/new')).toContain('its key has 8 waiting jobs, and its limit is 8');
    expect(harness.request('key app')).toContain('it has 8 waiting jobs, and its limit is 8');
  });

  it('have a quarter of the places of the key each while other users are active', () => {
    const harness = new Harness(100, boundsOf);
    harness.places.recordRequest('key app/modest');
    expect(harness.requestMany('key app/greedy', 10)).toBe(2);
    expect(harness.request('key app/greedy')).toBe(
      'this client may not wait: it has 2 waiting jobs, and its share is 2 of 8 places of its key while other users of the key are active',
    );
    expect(harness.request('key app/modest')).toBe(true);
  });

  it('lose no job to a later user, which gets the next free place of the key', () => {
    const harness = new Harness(100, boundsOf);
    expect(harness.requestMany('key app/greedy', 10)).toBe(8);
    expect(harness.request('key app/modest')).toContain('its limit is 8');
    harness.leave('key app/greedy');
    expect(harness.request('key app/greedy')).toContain('its share is 2 of 8 places of its key');
    expect(harness.request('key app/modest')).toBe(true);
    expect(harness.counts()).toEqual({ 'key app/greedy': 7, 'key app/modest': 1 });
  });

  it('leave the last places of the key to active users without a waiting job', () => {
    const harness = new Harness(100, boundsOf);
    for (const user of ['key app/late', 'key app/later', 'key app/last'] as const) harness.places.recordRequest(user);
    for (const user of ['key app/a', 'key app/b', 'key app/c'] as const) expect(harness.requestMany(user, 2)).toBe(2);
    expect(harness.request('key app')).toBe(true);
    expect(harness.request('key app')).toBe(
      'this client may not wait: the last 2 places of its key are reserved for other active users of the key',
    );
    expect(harness.request('key app/late')).toBe(true);
    expect(harness.counts()).toMatchObject({ 'key app/late': 1, 'key app': 1 });
  });

  it('may fill the key again ten minutes after the last request of another user', async () => {
    const harness = new Harness(100, boundsOf);
    harness.places.recordRequest('key app/modest');
    expect(harness.requestMany('key app/greedy', 10)).toBe(2);
    await harness.clock.advance(activeMs);
    expect(harness.requestMany('key app/greedy', 10)).toBe(6);
  });

  it('are forgotten with their key ten minutes after its last request', async () => {
    const { places, clock } = new Harness(100);
    const monotonicMs = clock.monotonicMs.bind(clock);
    let looks = 0;
    clock.monotonicMs = () => {
      looks++;
      return monotonicMs();
    };
    const looksAt = (client: ClientText) => {
      looks = 0;
      places.recordRequest(client);
      return looks;
    };
    for (let key = 0; key < 500; key++) places.recordRequest(`key ${key}/ada`);
    expect(looksAt('key app/ada')).toBeLessThan(10);
    await clock.advance(activeMs);
    expect(looksAt('key app/ada')).toBeGreaterThanOrEqual(500); // once for each key that is removed
    expect(looksAt('key app/ada')).toBeLessThan(10);
  });
});

describe('Clients with a common share', () => {
  const create = (weight = 1) => {
    const harness = new Harness(16);
    const share = { name: 'group bio', weight: () => weight };
    harness.shareOf = (client) => (client.startsWith('key bio') ? share : null);
    return harness;
  };
  const members = Array.from({ length: 20 }, (_, number) => `key bio${number}` as const);

  it('have together the places of one client, and of more with a larger weight', () => {
    for (const [weight, count] of [
      [1, 4],
      [2, 8],
      [100, 12],
    ] as const) {
      const harness = create(weight);
      harness.request('key other');
      expect(members.filter((member) => harness.request(member) === true)).toHaveLength(count);
      expect(harness.request('key bio19')).toBe(
        `this client may not wait: its group has ${count} waiting jobs, and its share is ${count} of 16 places of the queue while other clients are active ${variables}`,
      );
      expect(harness.requestMany('key other', 10)).toBe(3);
    }
  });

  it('divide these places among themselves, and leave some to active members without a waiting job', () => {
    const harness = create(2);
    harness.request('key other');
    expect(harness.requestMany('key bio0', 8)).toBe(8);
    harness.leave('key bio0');
    harness.places.recordRequest('key bio1', harness.shareOf('key bio1'));
    expect(harness.request('key bio0')).toBe(
      'this client may not wait: it has 7 waiting jobs, and its share is 2 of 8 places of its group while other members of the group are active',
    );
    for (const member of members.slice(2, 5)) harness.places.recordRequest(member, harness.shareOf(member));
    for (let left = 7; left > 1; left--) harness.leave('key bio0');
    expect(harness.requestMany('key bio2', 2)).toBe(2);
    expect(harness.requestMany('key bio3', 2)).toBe(2);
    expect(harness.requestMany('key bio4', 2)).toBe(2);
    expect(harness.request('key bio0')).toBe(
      'this client may not wait: the last place of its group is reserved for other active members of the group',
    );
    expect(harness.request('key bio1')).toBe(true);
  });

  it('keep their places if the share changes, and then count for the new one', () => {
    const harness = create();
    harness.shareOf = () => null;
    harness.request('key other');
    const waiter: Waiter & { share: CommonShare | null } = { client: 'key bio0', bytes: 1, share: null };
    harness.places.takePlace(waiter);
    const share = { name: 'group bio', weight: () => 1 };
    harness.places.changeShare(waiter, () => {
      waiter.share = share;
    });
    harness.shareOf = (client) => (client.startsWith('key bio') ? share : null);
    expect(members.slice(1).filter((member) => harness.request(member) === true)).toHaveLength(3);
    harness.places.leave(waiter);
    expect(harness.request('key bio9')).toBe(true);
  });
});

it.each([1, 2, 3])('Places: the rule holds whatever the clients do (seed %d)', async (seed) => {
  const random = randomNumbers(seed);
  const clients = [
    ...(seed === 1 ? [] : (['key g1', 'key g2/ada', 'key g2/bob', 'key g3'] as const)),
    'key a/1',
    'key a/2',
    'key a/3',
    'key a',
    'key b/1',
    'key b/2',
    'user c',
    'user d',
    'user e',
  ] as const;
  const boundsOf: BoundsOf = (client) => ({ maxRunning: 1, maxQueued: client === 'key a' ? 6 : null, weight: 1 });
  const maxWaiting = 8 + Math.floor(random() * 12);
  const harness = new Harness(maxWaiting, boundsOf, 1000 * maxWaiting); // places run out before bytes
  const { places, clock, waiting } = harness;
  const share = { name: 'group g', weight: () => 1 };
  harness.shareOf = (client) => (client.startsWith('key g') ? share : null);
  const topOf = (client: ClientText) => harness.shareOf(client)?.name ?? holderOf(client);
  const lastActiveMs = new Map<string, number>();
  const countOf = (top: string) => waiting.filter(({ client }) => topOf(client) === top).length;
  const isActive = (holder: string) => clock.monotonicMs() - (lastActiveMs.get(holder) ?? -activeMs) < activeMs;
  const reasons = new Set<string>();
  for (let step = 0; step < 3000; step++) {
    if (random() < 0.01) await clock.advance(activeMs);
    const before = [...waiting];
    const client = clients[Math.floor(random() ** 2 * clients.length)] as ClientText;
    const holder = topOf(client);
    if (random() < 0.4) {
      harness.leave(client);
      if (before.length > waiting.length) lastActiveMs.set(holder, clock.monotonicMs());
    } else {
      lastActiveMs.set(holder, clock.monotonicMs());
      const others = [...new Set(clients.map((each) => topOf(each)))].filter((other) => other !== holder);
      const reserving = others.filter((other) => isActive(other) && countOf(other) === 0).length;
      const reserved = Math.min(reserving, quarterOf(maxWaiting));
      const hadPlace = countOf(holder) > 0;
      const result = harness.request(client);
      if (result === true) {
        reasons.add('granted');
        const isAlone = others.every((other) => countOf(other) === 0) && reserving === 0;
        const share = holder === 'key a' ? 6 : isAlone ? maxWaiting : quarterOf(maxWaiting);
        ok(countOf(holder) <= share);
        if (hadPlace) ok(waiting.length + reserved <= maxWaiting);
      } else {
        reasons.add(result.includes('reserved') ? 'reserved' : result.includes('full') ? 'full' : 'share');
        if (!hadPlace) equal(waiting.length, maxWaiting); // a first job takes any free place
      }
      deepEqual(waiting.slice(0, before.length), before); // no job loses its place
    }
    ok(waiting.length <= maxWaiting);
    equal(places.taken, waiting.length);
    deepEqual(places.counts, countByClient(waiting));
  }
  expect(reasons).toEqual(new Set(['granted', 'share', 'full', 'reserved']));
  for (const waiter of waiting) places.leave(waiter);
  expect([places.taken, places.counts.size]).toEqual([0, 0]);
});

function countByClient(waiters: readonly Sharer[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { client } of waiters) counts.set(client, (counts.get(client) ?? 0) + 1);
  return counts;
}

describe('Recent clients', () => {
  it('do not include removed ones, nor more than the limit', () => {
    const recent = new RecentClients(2, new FakeClock());
    for (const client of ['a', 'b', 'c']) recent.addClient(client);
    expect(['a', 'c'].map((client) => recent.countOthers(client))).toEqual([2, 1]);
    recent.removeClient('c');
    expect(['a', 'b'].map((client) => recent.countOthers(client))).toEqual([1, 0]);
  });
});

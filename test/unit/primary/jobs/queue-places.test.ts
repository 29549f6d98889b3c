import { type BoundsOf, noBounds, quarterOf } from '../../../../src/primary/access/clients.js';
import { type PlaceHolder, QueuePlaces } from '../../../../src/primary/jobs/queue-places.js';
import { holderOf } from '../../../../src/shared/client.js';
import type { RelayError } from '../../../../src/shared/errors.js';
import { FakeClock } from '../../../support/fake-clock.js';
import { randomNumbers } from '../../../support/random.js';

const mayComeAgainMs = 600_000;

class Waiter implements PlaceHolder {
  readonly client: string;
  readonly bytes: number;
  lost: RelayError | null = null;
  readonly #places: QueuePlaces<Waiter>;

  constructor(client: string, bytes: number, places: QueuePlaces<Waiter>) {
    this.client = client;
    this.bytes = bytes;
    this.#places = places;
  }

  giveWay(reason: RelayError): void {
    this.lost = reason;
    this.#places.leave(this);
  }
}

class Harness {
  readonly clock = new FakeClock();
  readonly places: QueuePlaces<Waiter>;
  readonly waiters: Waiter[] = [];

  constructor(maxWaiting: number, boundsOf: BoundsOf = noBounds, maxWaitingBytes = 1_000_000) {
    this.places = new QueuePlaces<Waiter>({ maxWaiting, maxWaitingBytes }, boundsOf, this.clock);
  }

  /** Requests a place. Returns true, or why the request was refused. */
  come(client: string, bytes = 1): true | string {
    const waiter = new Waiter(client, bytes, this.places);
    this.places.saw(client);
    try {
      this.places.take(waiter);
    } catch (error) {
      expect(error).toMatchObject({ code: 'concurrency_limited', retryAfterSeconds: 1 });
      return (error as RelayError).message;
    }
    this.waiters.push(waiter);
    return true;
  }

  /** Requests this many places. Returns how many were granted. */
  crowd(client: string, count: number): number {
    return Array.from({ length: count }, () => this.come(client)).filter((came) => came === true).length;
  }

  counts(): Record<string, number> {
    return Object.fromEntries(this.places.counts);
  }

  get lost(): Waiter[] {
    return this.waiters.filter(({ lost }) => lost !== null);
  }
}

const full = 'all slots are taken and the queue is full (MODEL_API_MAX_CONCURRENT, MODEL_API_MAX_QUEUE)';

const names = Array.from({ length: 20 }, (_, n) => `key app/${n}`);

describe('The users of one key', () => {
  it('take no place that another client needs, and together have the share of one client', () => {
    const harness = new Harness(8);
    expect(names.filter((name) => harness.come(name) === true)).toHaveLength(8);
    expect(harness.come('key bob')).toBe(true);
    expect(harness.lost.map(({ client }) => client)).toEqual(['key app/7']);
    const others = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => harness.come(`user ${name}`));
    expect(others.slice(0, 5)).toEqual([true, true, true, true, true]);
    expect(others[5]).toMatch(/queue is full/);
    expect(harness.counts()).toMatchObject({ 'key app/0': 1, 'key app/1': 1, 'key bob': 1 });
  });

  it('take no places from each other while they are alone', () => {
    const harness = new Harness(4);
    expect(names.filter((name) => harness.come(name) === true)).toHaveLength(4);
    expect(harness.lost).toEqual([]);
  });

  it('lose only as many places as one text of another client needs', () => {
    const harness = new Harness(100, noBounds, 100);
    for (const name of names.slice(0, 10)) expect(harness.come(name, 10)).toBe(true);
    expect(harness.come('key bob', 25)).toBe(true);
    expect(harness.lost).toHaveLength(3);
  });
});

describe('The users of one key among themselves', () => {
  const boundsOf: BoundsOf = (client) => ({ maxRunning: 1, maxQueued: client === 'key app' ? 8 : null, weight: 1 });

  it('share the limit of the key', () => {
    const harness = new Harness(100, boundsOf);
    expect(names.slice(0, 8).map((name) => harness.come(name))).toEqual(Array(8).fill(true));
    for (const name of ['key app/new', 'key app']) {
      expect(harness.come(name)).toMatch(/its key has 8 jobs|it has 8 jobs/);
    }
    expect(harness.lost).toEqual([]);
  });

  it('evict each other like clients: a single user may take all places, but is guaranteed only a quarter', () => {
    const harness = new Harness(100, boundsOf);
    expect(harness.crowd('key app/greedy', 10)).toBe(8);
    expect(harness.crowd('key app/modest', 10)).toBe(2);
    expect(harness.crowd('key app', 1)).toBe(1);
    expect(harness.crowd('key app/greedy', 1)).toBe(0);
    expect(harness.counts()).toEqual({ 'key app/greedy': 5, 'key app/modest': 2, 'key app': 1 });
    expect(harness.lost.map(({ client }) => client)).toEqual(Array(3).fill('key app/greedy'));
    expect(harness.come('key app/modest')).toBe(
      'this client may not wait: it has 2 jobs waiting already, a quarter of what its key may have while other users of that key want some',
    );
  });

  it('may fill the key again ten minutes after the last job of another user', async () => {
    const harness = new Harness(100, boundsOf);
    harness.places.saw('key app/modest');
    expect(harness.crowd('key app/greedy', 10)).toBe(2);
    await harness.clock.advance(mayComeAgainMs);
    expect(harness.crowd('key app/greedy', 10)).toBe(6);
  });

  it('lose as much text as another user needs', () => {
    const harness = new Harness(100, noBounds, 1000);
    for (let count = 0; count < 10; count++) harness.come('key app/greedy', 100);
    expect(harness.come('key app/modest', 250)).toBe(true);
    expect(harness.counts()).toEqual({ 'key app/greedy': 7, 'key app/modest': 1 });
    expect(harness.come('key app/modest', 10)).toMatch(/may hold 250 bytes, a quarter of what its key may have/);
  });

  it('do not cost other clients any place', () => {
    const harness = new Harness(8);
    harness.crowd('key other', 2);
    for (const name of names) harness.come(name);
    expect(harness.counts()).toMatchObject({ 'key other': 2 });
    expect(harness.places.taken).toBe(4);
    expect(harness.lost).toEqual([]);
  });
});

describe('A client that is alone', () => {
  it.each([1, 2, 3, 8, 100])('may take all of %d places, and not one more', (maxWaiting) => {
    const harness = new Harness(maxWaiting);
    expect(harness.crowd('a', maxWaiting + 7)).toBe(maxWaiting);
    expect(harness.come('a')).toBe(full);
    expect(harness.places.refused).toEqual({ full: 8, bound: 0 });
  });

  it('is alone again ten minutes after the last job of another client', async () => {
    const harness = new Harness(100);
    harness.places.saw('b');
    expect(harness.crowd('a', 100)).toBe(25);
    await harness.clock.advance(mayComeAgainMs);
    expect(harness.crowd('a', 100)).toBe(75);
  });
});

describe('A client that is not alone', () => {
  it('gets a quarter of the places, and the error explains why', () => {
    const harness = new Harness(100);
    harness.come('b');
    expect(harness.crowd('a', 1000)).toBe(25);
    expect(harness.come('a')).toBe(
      'this client may not wait: it has 25 jobs waiting already, a quarter of the queue (MODEL_API_MAX_QUEUE, MODEL_API_CLIENT_MAX_QUEUE) while there are others',
    );
    expect(harness.places.refused).toEqual({ full: 0, bound: 976 });
    expect(harness.counts()).toEqual({ a: 25, b: 1 });
  });

  it('is not alone while another client waits, however long ago that one arrived', async () => {
    const harness = new Harness(100);
    harness.come('b');
    await harness.clock.advance(mayComeAgainMs * 2);
    expect(harness.crowd('a', 100)).toBe(25);
  });

  it('gets a quarter of the bytes, or one job of any size', () => {
    const harness = new Harness(100, noBounds, 1000);
    harness.places.saw('b');
    expect(harness.come('a', 600)).toBe(true);
    expect(harness.come('a', 1)).toContain('250 bytes while there are others');
    expect([harness.come('c', 200), harness.come('c', 50)]).toEqual([true, true]);
    expect(harness.come('c', 1)).toContain('250 bytes');
  });
});

describe('A configured limit of a client', () => {
  const boundsOf: BoundsOf = (client) => ({ maxRunning: 1, maxQueued: client === 'bound' ? 3 : null, weight: 1 });

  it('applies at any time, also to a client that is alone', () => {
    const harness = new Harness(100, boundsOf);
    expect(harness.crowd('bound', 10)).toBe(3);
    expect(harness.come('bound')).toBe(
      'this client may not wait: it has 3 jobs waiting already (MODEL_API_CLIENT_MAX_QUEUE)',
    );
  });

  it('guarantees its places: no other client can take them', () => {
    const harness = new Harness(4, boundsOf);
    expect(harness.crowd('bound', 3)).toBe(3);
    expect(harness.crowd('b', 4)).toBe(1);
    expect(harness.come('c')).toBe(full);
    expect(harness.lost).toEqual([]);
  });
});

describe('A client with a weight', () => {
  const weights: Readonly<Record<string, number>> = { 'key half': 2, 'key heavy': 100 };
  const boundsOf: BoundsOf = (client) => ({ maxRunning: 1, maxQueued: null, weight: weights[client] ?? 1 });

  it('has as many quarters of the queue, in places and in bytes, and loses what exceeds them', () => {
    const harness = new Harness(8, boundsOf, 800);
    harness.crowd('greedy', 8);
    expect(harness.crowd('key half', 8)).toBe(4);
    expect(harness.counts()).toEqual({ greedy: 4, 'key half': 4 });
    expect(harness.come('key half')).toContain('its share of the queue');
    const full = new Harness(100, boundsOf, 1000);
    full.come('greedy', 1);
    expect([full.come('key half', 250), full.come('key half', 250), full.come('key half', 1)]).toEqual([
      true,
      true,
      expect.stringContaining('500 bytes while there are others'),
    ]);
  });

  it('leaves a quarter to the others, however large its weight is', () => {
    const harness = new Harness(8, boundsOf);
    harness.crowd('greedy', 8);
    expect(harness.crowd('key heavy', 8)).toBe(6);
    expect(harness.counts()).toEqual({ greedy: 2, 'key heavy': 6 });
  });
});

describe('A client that arrives at a full queue', () => {
  it('gets the newest place of the client that exceeds its share', () => {
    const harness = new Harness(8);
    expect(harness.crowd('greedy', 8)).toBe(8);
    expect(harness.come('modest')).toBe(true);
    expect(harness.counts()).toEqual({ greedy: 7, modest: 1 });
    expect(harness.waiters.map(({ lost }) => lost !== null)).toEqual([...Array(7).fill(false), true, false]);
    expect(harness.waiters[7]?.lost).toMatchObject({
      code: 'queue_timeout',
      message: expect.stringContaining('MODEL_API_CLIENT_MAX_QUEUE'),
    });
  });

  it('gets its quarter and no more, and the evicted client regains no more than its share', () => {
    const harness = new Harness(8);
    harness.crowd('greedy', 8);
    expect(harness.crowd('modest', 8)).toBe(2);
    expect(harness.crowd('greedy', 8)).toBe(0);
    expect(harness.counts()).toEqual({ greedy: 6, modest: 2 });
    expect(harness.lost).toHaveLength(2);
  });

  it('gets no place if all clients are within their shares', () => {
    const harness = new Harness(4);
    expect(['a', 'b', 'c', 'd'].map((client) => harness.come(client))).toEqual([true, true, true, true]);
    expect(harness.come('e')).toBe(full);
    expect(harness.lost).toEqual([]);
  });

  it('evicts as many bytes as it needs, and nothing if that would not suffice', () => {
    const harness = new Harness(100, noBounds, 1000);
    for (let number = 0; number < 10; number++) harness.come('greedy', 100);
    expect(harness.come('modest', 250)).toBe(true);
    expect(harness.lost).toHaveLength(3);
    expect(harness.come('large', 1001)).toBe(full);
    expect(harness.lost).toHaveLength(3);
  });
});

it.each([1, 2, 3])('Places: every limit and count stays correct through random events (seed %d)', async (seed) => {
  const random = randomNumbers(seed);
  const maxWaiting = 5 + Math.floor(random() * 20);
  const boundsOf: BoundsOf = (client) => ({ maxRunning: 1, maxQueued: client === 'client 0' ? 2 : null, weight: 1 });
  const maxBytes = 20 * maxWaiting; // places run out before bytes
  const harness = new Harness(maxWaiting, boundsOf, maxBytes);
  const shareOf = (client: string) => boundsOf(client).maxQueued ?? quarterOf(maxWaiting);
  const { places, clock } = harness;
  const left = new Set<Waiter>();
  const present = () => harness.waiters.filter((waiter) => waiter.lost === null && !left.has(waiter));
  for (let step = 0; step < 1500; step++) {
    const before = present();
    if (step % 100 === 0) {
      for (const waiter of before.splice(0)) {
        left.add(waiter);
        places.leave(waiter);
      }
      await clock.advance(mayComeAgainMs); // no other client is active afterwards
    }
    const isAlone = step % 100 < 50;
    const client = isAlone ? 'client 5' : `client ${Math.floor(random() ** 2 * 6)}`;
    const leaver = before[Math.floor(random() * before.length)];
    if (leaver === undefined || random() < (isAlone ? 0.9 : 0.6)) {
      const came = harness.come(client, Math.floor(random() * 20));
      const isAnyBeyond = [...countsOf(before)].some(([other, count]) => other !== client && count > shareOf(other));
      if (isAnyBeyond && (countsOf(before).get(client) ?? 0) < shareOf(client)) expect(came).not.toBe(full);
    } else {
      places.leave(leaver);
      left.add(leaver);
    }

    const now = present();
    const counts = countsOf(now);
    expect(places.counts).toEqual(counts);
    expect(places.taken).toBe(now.length);
    expect(now.length).toBeLessThanOrEqual(maxWaiting);
    expect(bytesOf(now)).toBeLessThanOrEqual(maxBytes);
    expect(counts.get('client 0') ?? 0).toBeLessThanOrEqual(2);
    for (const { client: loser } of before.filter(({ lost }) => lost !== null)) {
      const held = before.filter((waiter) => waiter.client === loser);
      expect(held.length > shareOf(loser) || bytesOf(held) > maxBytes / 4).toBe(true);
      expect(loser).not.toBe(client);
    }
  }
  expect(harness.lost.length).toBeGreaterThan(0);
  expect(new Map(places.clients.map(({ client, count }) => [client, count]))).toEqual(places.counts);
  for (const waiter of present()) places.leave(waiter);
  expect([places.taken, places.counts.size]).toEqual([0, 0]);
});

it.each([1, 2, 3])(
  'Places: key limits hold and no client loses its guaranteed places, whatever the users do (seed %d)',
  async (seed) => {
    const random = randomNumbers(seed);
    const clients = ['key a/1', 'key a/2', 'key a/3', 'key a', 'key b/1', 'key b/2', 'user c', 'user d'];
    const bounds: Readonly<Record<string, number>> = { 'key a': 6 };
    const boundsOf: BoundsOf = (client) => ({ maxRunning: 1, maxQueued: bounds[client] ?? null, weight: 1 });
    const harness = new Harness(16, boundsOf, 16_000); // places run out before bytes
    const { places, clock } = harness;
    const left = new Set<Waiter>();
    const present = () => harness.waiters.filter((waiter) => waiter.lost === null && !left.has(waiter));
    const share = { 'key a': 6, 'key b': 4, 'user c': 4, 'user d': 4 };
    for (let step = 0; step < 3000; step++) {
      const before = present();
      const leaver = before[Math.floor(random() * before.length)];
      if (random() < 0.02) await clock.advance(mayComeAgainMs / 2);
      if (leaver === undefined || random() < 0.6) harness.come(clients[Math.floor(random() ** 2 * 8)] as string, 1);
      else {
        places.leave(leaver);
        left.add(leaver);
      }
      const now = present();
      const newcomer = now.find((waiter) => !before.includes(waiter));
      expect(places.counts).toEqual(countsOf(now));
      expect(now.length).toBeLessThanOrEqual(16);
      expect(now.filter(({ client }) => holderOf(client) === 'key a').length).toBeLessThanOrEqual(6);
      for (const loser of before.filter(({ lost }) => lost !== null)) {
        const holder = holderOf(loser.client) as keyof typeof share;
        const isOfNewcomer = newcomer !== undefined && holder === holderOf(newcomer.client);
        const held = before.filter(({ client }) =>
          isOfNewcomer ? client === loser.client : holderOf(client) === holder,
        );
        expect(held.length).toBeGreaterThan(isOfNewcomer ? quarterOf(share[holder]) : share[holder]);
        expect(loser.client).not.toBe(newcomer?.client);
      }
    }
    expect(harness.lost.length).toBeGreaterThan(0);
  },
);

function bytesOf(waiters: readonly Waiter[]): number {
  return waiters.reduce((sum, { bytes }) => sum + bytes, 0);
}

function countsOf(waiters: readonly Waiter[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { client } of waiters) counts.set(client, (counts.get(client) ?? 0) + 1);
  return counts;
}

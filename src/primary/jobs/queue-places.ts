import { holderOf } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import { RelayError } from '../../shared/errors.js';
import { LinkedList, type Node } from '../../shared/linked-list.js';
import { type BoundsOf, quarterOf } from '../limits/client-bounds.js';
import { Sightings } from '../limits/sightings.js';

export interface PlaceLimits {
  /** Jobs that may wait for a slot. */
  readonly maxWaiting: number;
  /** Bytes of text that waiting jobs may hold together. */
  readonly maxWaitingBytes: number;
}

/** One that waits, as far as its place goes. */
export interface PlaceHolder {
  readonly client: string;
  /** Of its text. */
  readonly bytes: number;
  /** Its place goes to another client. Frees the place at once. */
  giveWay(reason: RelayError): void;
}

/** A place that is taken. */
interface Place {
  readonly holder: PlaceHolder;
  /** Milliseconds since the epoch. */
  readonly takenAt: number;
}

/** What one client holds. */
interface Holding {
  /** In order of arrival. */
  readonly places: LinkedList<Place>;
  count: number;
  bytes: number;
}

/** A client that waits: how many jobs it has waiting, and when the first of them came, milliseconds since the epoch. */
export interface WaitingClient {
  readonly client: string;
  readonly count: number;
  readonly oldestAt: number;
}

/** Those who wait of one key and of its sub-clients, in order of arrival. */
interface Crowd {
  readonly key: string;
  readonly holders: readonly PlaceHolder[];
  readonly bytes: number;
}

/** So long after its last job a client counts as one that may come again. */
const mayComeAgainMs = 600_000;

/**
 * Owns the places in the queue, and what each client holds of them. Every client has a share of its own, in places and
 * in bytes. Beyond it a client may hold what is free, but only while it is alone: it takes no more while there are
 * others, and gives the newest of what it has to one that comes and needs its own share. So does a key whose sub-clients
 * hold more together than the share of one: its holder can give as many names as he likes.
 */
export class QueuePlaces {
  readonly #limits: PlaceLimits;
  readonly #boundsOf: BoundsOf;
  readonly #clock: Clock;
  readonly #sightings = new Sightings();
  readonly #byClient = new Map<string, Holding>();
  readonly #nodes = new Map<PlaceHolder, Node<Place>>();
  #bytes = 0;
  #refusedFull = 0;
  #refusedBound = 0;

  constructor(limits: PlaceLimits, boundsOf: BoundsOf, clock: Clock) {
    this.#limits = limits;
    this.#boundsOf = boundsOf;
    this.#clock = clock;
  }

  get taken(): number {
    return this.#nodes.size;
  }

  /** Jobs refused since the start: because the queue was full, and because of the bound of their client. */
  get refused(): { readonly full: number; readonly bound: number } {
    return { full: this.#refusedFull, bound: this.#refusedBound };
  }

  /** Places by client, without those who have none. */
  get counts(): ReadonlyMap<string, number> {
    return new Map([...this.#byClient].map(([client, { count }]) => [client, count]));
  }

  /** The clients that have places. */
  get clients(): WaitingClient[] {
    return [...this.#byClient].flatMap(([client, { places, count }]) => {
      const [oldest] = places;
      return oldest === undefined ? [] : [{ client, count, oldestAt: oldest.takenAt }];
    });
  }

  /** A client has asked for a job, whatever becomes of it. */
  saw(client: string): void {
    this.#sightings.saw(client, this.#clock.monotonicMs());
  }

  /** Throws `concurrency_limited` where its client may hold no more, or where all places are taken by right. */
  take(holder: PlaceHolder): void {
    this.#checkBound(holder);
    const yielding = this.#isRoomFor(holder) ? [] : (this.#whoGivesWay(holder) ?? this.#crowdGivesWay(holder));
    if (yielding === null) throw this.#refuseFull();
    for (const other of yielding) other.giveWay(lostPlace());
    const holding = this.#byClient.get(holder.client) ?? this.#openHolding(holder.client);
    this.#nodes.set(holder, holding.places.append({ holder, takenAt: this.#clock.now() }));
    holding.count++;
    holding.bytes += holder.bytes;
    this.#bytes += holder.bytes;
  }

  /** Does nothing where it has no place any more. */
  leave(holder: PlaceHolder): void {
    const [node, holding] = [this.#nodes.get(holder), this.#byClient.get(holder.client)];
    if (node === undefined || holding === undefined) return;
    this.#nodes.delete(holder);
    holding.places.remove(node);
    holding.count--;
    holding.bytes -= holder.bytes;
    this.#bytes -= holder.bytes;
    if (holding.count === 0) this.#byClient.delete(holder.client);
  }

  #checkBound({ client, bytes }: PlaceHolder): void {
    const { count, bytes: held } = this.#byClient.get(client) ?? { count: 0, bytes: 0 };
    const { maxQueued } = this.#boundsOf(client);
    if (maxQueued !== null && count >= maxQueued) {
      throw this.#refuseBound(`it has ${count} jobs waiting already (MODEL_API_CLIENT_MAX_QUEUE)`);
    }
    if (!this.#areOthers(client, count)) return;
    const share = `a quarter of the queue (MODEL_API_MAX_QUEUE, MODEL_API_CLIENT_MAX_QUEUE) while there are others`;
    if (count >= this.#placesOf(client)) throw this.#refuseBound(`it has ${count} jobs waiting already, ${share}`);
    if (count === 0 || held + bytes <= this.#bytesOfOne) return; // a single job of any size may wait
    throw this.#refuseBound(`the text of its waiting jobs may hold ${this.#bytesOfOne} bytes while there are others`);
  }

  /** Whether another client waits, or may come. */
  #areOthers(client: string, count: number): boolean {
    return this.taken > count || this.#sightings.sinceOthersThan(client, this.#clock.monotonicMs()) < mayComeAgainMs;
  }

  #isRoomFor({ bytes }: PlaceHolder): boolean {
    return this.#hasRoom(0, 0, bytes);
  }

  /** Whether there is room for one more of this size, once so much has become free. */
  #hasRoom(freedPlaces: number, freedBytes: number, bytes: number): boolean {
    const { maxWaiting, maxWaitingBytes } = this.#limits;
    return this.taken - freedPlaces < maxWaiting && this.#bytes - freedBytes + bytes <= maxWaitingBytes;
  }

  /** The newest holders of the client that is furthest beyond its share, as many as it takes; null where that is not enough. */
  #whoGivesWay({ client, bytes }: PlaceHolder): readonly PlaceHolder[] | null {
    const greediest = this.#greediestBeside(client);
    if (greediest === null) return null;
    let left = { count: greediest.holding.count, bytes: greediest.holding.bytes };
    const yielding: PlaceHolder[] = [];
    for (const { holder } of greediest.holding.places.backwards()) {
      if (!this.#isBeyond(greediest.client, left)) return null;
      yielding.push(holder);
      left = { count: left.count - 1, bytes: left.bytes - holder.bytes };
      if (this.#hasRoom(yielding.length, greediest.holding.bytes - left.bytes, bytes)) return yielding;
    }
    return null;
  }

  /** The newest of the sub-clients of one other key, as long as they hold more together than one client's share. */
  #crowdGivesWay({ client, bytes }: PlaceHolder): readonly PlaceHolder[] | null {
    const crowd = this.#largestCrowdBeside(holderOf(client));
    if (crowd === null) return null;
    let [count, held] = [crowd.holders.length, crowd.bytes];
    const yielding: PlaceHolder[] = [];
    for (const holder of crowd.holders.toReversed()) {
      if (!this.#isBeyond(crowd.key, { count, bytes: held })) return null;
      yielding.push(holder);
      [count, held] = [count - 1, held - holder.bytes];
      if (this.#hasRoom(yielding.length, crowd.bytes - held, bytes)) return yielding;
    }
    return null;
  }

  #largestCrowdBeside(key: string): Crowd | null {
    const crowds = new Map<string, PlaceHolder[]>();
    for (const holder of this.#nodes.keys()) {
      const name = holderOf(holder.client);
      const crowd = crowds.get(name) ?? [];
      crowd.push(holder);
      if (name !== key) crowds.set(name, crowd);
    }
    const [first] = [...crowds].sort(([, a], [, b]) => b.length - a.length);
    if (first === undefined) return null;
    const [name, holders] = first;
    return { key: name, holders, bytes: holders.reduce((sum, holder) => sum + holder.bytes, 0) };
  }

  #greediestBeside(client: string): { readonly client: string; readonly holding: Holding } | null {
    const beyond = [...this.#byClient].filter(([name, holding]) => name !== client && this.#isBeyond(name, holding));
    const [first] = beyond.sort(([, a], [, b]) => b.count - a.count);
    return first === undefined ? null : { client: first[0], holding: first[1] };
  }

  #isBeyond(client: string, { count, bytes }: Pick<Holding, 'count' | 'bytes'>): boolean {
    return count > this.#placesOf(client) || (count > 1 && bytes > this.#bytesOfOne);
  }

  /** The places that are a client's own. */
  #placesOf(client: string): number {
    return this.#boundsOf(client).maxQueued ?? quarterOf(this.#limits.maxWaiting);
  }

  get #bytesOfOne(): number {
    return quarterOf(this.#limits.maxWaitingBytes);
  }

  #openHolding(client: string): Holding {
    const holding = { places: new LinkedList<Place>(), count: 0, bytes: 0 };
    this.#byClient.set(client, holding);
    return holding;
  }

  #refuseFull(): RelayError {
    this.#refusedFull++;
    const message = 'all slots are taken and the queue is full (MODEL_API_MAX_CONCURRENT, MODEL_API_MAX_QUEUE)';
    return new RelayError('concurrency_limited', message, { retryAfterSeconds: 1 });
  }

  #refuseBound(why: string): RelayError {
    this.#refusedBound++;
    return new RelayError('concurrency_limited', `this client may not wait: ${why}`, { retryAfterSeconds: 1 });
  }
}

/** Not by its own time limit, but it has waited in vain all the same. */
function lostPlace(): RelayError {
  const why = 'it had more waiting than its own share (MODEL_API_CLIENT_MAX_QUEUE), and others came';
  return new RelayError('queue_timeout', `this client lost a place in the queue: ${why}`);
}

import { holderOf } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import { RelayError } from '../../shared/errors.js';
import { type BoundsOf, quarterOf } from '../access/clients.js';
import {
  type Amount,
  FairShare,
  type HolderShare,
  type NameShare,
  nothing,
  type Sharer,
} from '../fairness/fair-share.js';

export interface PlaceLimits {
  /** Maximum number of jobs that wait for a slot. */
  readonly maxWaiting: number;
  /** Maximum bytes of text of all waiting jobs. */
  readonly maxWaitingBytes: number;
}

/** Holder of a place in the queue. */
export interface PlaceHolder extends Sharer {
  /** Gives up the place to another client, at once. */
  giveWay(reason: RelayError): void;
}

/** A client stays active for this time after its last job. */
const mayComeAgainMs = 600_000;

/** Tests whether the freed amount suffices. */
type IsEnough = (freed: Amount) => boolean;

/**
 * Owns the places in the queue. Each client has a share, in places and in bytes. A client may exceed its share while it
 * is the only active one. When other clients are active, it gets no more places, and its newest jobs are evicted if a
 * client within its share needs their places. A key holder and its sub-clients count as one client, and divide its
 * share by the same rules.
 */
export class QueuePlaces<W extends PlaceHolder> {
  readonly #limits: PlaceLimits;
  readonly #boundsOf: BoundsOf;
  readonly #clock: Clock;
  readonly #held = new FairShare<W>();
  #refusedFull = 0;
  #refusedBound = 0;

  constructor(limits: PlaceLimits, boundsOf: BoundsOf, clock: Clock) {
    this.#limits = limits;
    this.#boundsOf = boundsOf;
    this.#clock = clock;
  }

  get taken(): number {
    return this.#held.count;
  }

  /** Jobs refused since the start, because the queue was full or because of their client's limit. */
  get refused(): { readonly full: number; readonly bound: number } {
    return { full: this.#refusedFull, bound: this.#refusedBound };
  }

  /** Places by client; clients without places are omitted. */
  get counts(): ReadonlyMap<string, number> {
    return new Map(this.clients.map(({ client, count }) => [client, count]));
  }

  /** Clients that hold places; each sub-client is listed separately. */
  get clients(): NameShare<W>[] {
    return [...this.#held.holders.values()].flatMap(({ names }) => names);
  }

  /** Records that a client sent a request, even if the request is refused. */
  saw(client: string): void {
    this.#held.saw(client, this.#clock.monotonicMs());
  }

  /**
   * Takes a place, and evicts other jobs if necessary. Throws `concurrency_limited` if the client may hold no more
   * places, or if no place can be freed.
   */
  take(waiter: W): void {
    for (const other of this.#whoGivesWay(waiter)) other.giveWay(lostPlace());
    this.#held.add(waiter, this.#clock.now());
  }

  /** Frees a place; has no effect if the job holds none. */
  leave(waiter: W): void {
    this.#held.remove(waiter);
  }

  /**
   * Returns the jobs to evict for this one; empty if there is room. Throws `concurrency_limited` if evictions cannot
   * make room.
   */
  #whoGivesWay(waiter: W): readonly PlaceHolder[] {
    const { client, bytes } = waiter;
    const [holder, own] = [holderOf(client), this.#held.of(client)];
    const most = this.#mostOf(holder);
    const share = this.#shareOfName(most);
    this.#checkName(waiter, own, share);
    const mayGive = (name: string, left: Amount) => name !== client && isBeyond(left, share);
    if (!isWithin(own, bytes, most)) {
      const isEnough = (freed: Amount) => isWithin(less(own, freed), bytes, most) && this.#hasRoom(freed, bytes);
      const yielding = collected(own.newest(mayGive), isEnough);
      if (yielding === null) throw this.#refuseBound(this.#whyBound(client, own, most));
      return yielding;
    }
    const isEnough = (freed: Amount) => this.#hasRoom(freed, bytes);
    if (isEnough(nothing)) return [];
    const yielding = this.#greediestBeside(holder, isEnough) ?? collected(own.newest(mayGive), isEnough);
    if (yielding === null) throw this.#refuseFull();
    return yielding;
  }

  /** Returns the current limit of a holder. For the only active holder, only its configured limit counts. */
  #mostOf(holder: string): Amount {
    const { maxQueued } = this.#boundsOf(holder);
    const share = this.#held.hasOthersThan(holder, this.#clock.monotonicMs(), mayComeAgainMs)
      ? this.#shareOf(holder)
      : unlimited;
    return { count: maxQueued ?? share.count, bytes: share.bytes };
  }

  /** Returns the guaranteed share of a holder. */
  #shareOf(holder: string): Amount {
    const { maxWaiting, maxWaitingBytes } = this.#limits;
    const { maxQueued, weight } = this.#boundsOf(holder);
    return { count: maxQueued ?? quarterOf(maxWaiting, weight), bytes: quarterOf(maxWaitingBytes, weight) };
  }

  /** Returns the share of a sub-client within its holder's limit, while other sub-clients are active. */
  #shareOfName({ count, bytes }: Amount): Amount {
    const { maxWaiting, maxWaitingBytes } = this.#limits;
    return { count: quarterOf(Math.min(count, maxWaiting)), bytes: quarterOf(Math.min(bytes, maxWaitingBytes)) };
  }

  #checkName({ client, bytes }: PlaceHolder, own: HolderShare<W>, share: Amount): void {
    const held = own.amountOf(client);
    if (!own.hasOthersThan(client, this.#clock.monotonicMs(), mayComeAgainMs) || isWithin(held, bytes, share)) return;
    const of = 'a quarter of what its key may have while other users of that key want some';
    if (held.count < share.count)
      throw this.#refuseBound(`the text of its waiting jobs may hold ${share.bytes} bytes, ${of}`);
    throw this.#refuseBound(`it has ${held.count} jobs waiting already, ${of}`);
  }

  #whyBound(client: string, own: Amount, most: Amount): string {
    const holder = holderOf(client);
    const [it, its] = client === holder ? ['it', 'its'] : ['its key', "its key's"];
    if (own.count < most.count)
      return `the text of ${its} waiting jobs may hold ${most.bytes} bytes while there are others`;
    const waiting = `${it} has ${own.count} jobs waiting already`;
    if (this.#boundsOf(holder).maxQueued !== null) return `${waiting} (MODEL_API_CLIENT_MAX_QUEUE)`;
    const share = this.#boundsOf(holder).weight === 1 ? 'a quarter' : 'its share';
    return `${waiting}, ${share} of the queue (MODEL_API_MAX_QUEUE, MODEL_API_CLIENT_MAX_QUEUE) while there are others`;
  }

  /** Whether a job of this size fits after this amount is freed. */
  #hasRoom(freed: Amount, bytes: number): boolean {
    const { maxWaiting, maxWaitingBytes } = this.#limits;
    return this.taken - freed.count < maxWaiting && this.#held.bytes - freed.bytes + bytes <= maxWaitingBytes;
  }

  /**
   * Returns the newest jobs of the holder that exceeds its share the most, as many as necessary; null if they do not
   * suffice.
   */
  #greediestBeside(holder: string, isEnough: IsEnough): readonly PlaceHolder[] | null {
    const beyond = [...this.#held.holders].filter(
      ([name, own]) => name !== holder && isBeyond(own, this.#shareOf(name)),
    );
    const [first] = beyond.sort(([, a], [, b]) => b.count - a.count);
    if (first === undefined) return null;
    const [name, own] = first;
    return collected(own.newest(), isEnough, (freed) => isBeyond(less(own, freed), this.#shareOf(name)));
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

const unlimited: Amount = { count: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY };

/** Whether one more job of this size stays within a limit. A first job may wait, whatever its size. */
function isWithin(held: Amount, bytes: number, most: Amount): boolean {
  return held.count < most.count && (held.count === 0 || held.bytes + bytes <= most.bytes);
}

function isBeyond({ count, bytes }: Amount, share: Amount): boolean {
  return count > share.count || (count > 1 && bytes > share.bytes);
}

function less(held: Amount, freed: Amount): Amount {
  return { count: held.count - freed.count, bytes: held.bytes - freed.bytes };
}

/**
 * Returns the first jobs that together suffice; null if all of them do not suffice, or if `mayGoOn` ends the search
 * before.
 */
function collected(
  waiters: Iterable<PlaceHolder>,
  isEnough: IsEnough,
  mayGoOn: IsEnough = () => true,
): readonly PlaceHolder[] | null {
  const yielding: PlaceHolder[] = [];
  let freed = nothing;
  for (const waiter of waiters) {
    if (!mayGoOn(freed)) return null;
    yielding.push(waiter);
    freed = { count: freed.count + 1, bytes: freed.bytes + waiter.bytes };
    if (isEnough(freed)) return yielding;
  }
  return null;
}

/**
 * Returns the error of an evicted job. Its code is `queue_timeout`, although no time limit has passed, because the
 * client has waited without success as well.
 */
function lostPlace(): RelayError {
  const why = 'it had more waiting than its own share (MODEL_API_CLIENT_MAX_QUEUE), and others came';
  return new RelayError('queue_timeout', `this client lost a place in the queue: ${why}`);
}

/** Minimum time for which a queue must be full before it is reported. */
const leastMs = 10_000;
/** Time within which a freed place is taken again if the queue stays full. */
const gapMs = 5000;

/** Owns the time since when the queue has been full. */
export class FullQueue {
  readonly #clock: Clock;
  /** Start of the full queue: `ms` by the monotonic clock, `at` in milliseconds since the epoch. */
  #begun: { readonly ms: number; readonly at: number } | null = null;
  /** Time when a place became free, by the monotonic clock; null while no place is free. */
  #freeMs: number | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Called when a place was taken or freed. */
  changed(isPlaceFree: boolean): void {
    if (isPlaceFree) this.#freeMs ??= this.#clock.monotonicMs();
    else this.#filled();
  }

  /** Start of the full queue, in milliseconds since the epoch; null if it is not full, or only for a short time. */
  get since(): number | null {
    if (this.#begun === null || !this.#isFull) return null;
    return this.#clock.monotonicMs() - this.#begun.ms < leastMs ? null : this.#begun.at;
  }

  #filled(): void {
    if (!this.#isFull) this.#begun = { ms: this.#clock.monotonicMs(), at: this.#clock.now() };
    this.#freeMs = null;
  }

  get #isFull(): boolean {
    if (this.#begun === null) return false;
    return this.#freeMs === null || this.#clock.monotonicMs() - this.#freeMs < gapMs;
  }
}

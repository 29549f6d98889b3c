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
  /** Jobs that may wait for a slot. */
  readonly maxWaiting: number;
  /** Bytes of text that waiting jobs may hold together. */
  readonly maxWaitingBytes: number;
}

/** One that waits, as far as its place goes. */
export interface PlaceHolder extends Sharer {
  /** Its place goes to another client. Frees the place at once. */
  giveWay(reason: RelayError): void;
}

/** So long after its last job a client counts as one that may come again. */
const mayComeAgainMs = 600_000;

/** What is enough, once so much has become free. */
type IsEnough = (freed: Amount) => boolean;

/**
 * Owns the places in the queue, and what each client holds of them. Every client has a share of its own, in places and
 * in bytes. Beyond it a client may hold what is free, but only while it is alone: it takes no more while there are
 * others, and gives the newest of what it has to one that comes and needs its own share. The holder of a key and all
 * names that it speaks for are one client in this, and share by the same rules what that one may have.
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

  /** Jobs refused since the start: because the queue was full, and because of the bound of their client. */
  get refused(): { readonly full: number; readonly bound: number } {
    return { full: this.#refusedFull, bound: this.#refusedBound };
  }

  /** Places by client, without those who have none. */
  get counts(): ReadonlyMap<string, number> {
    return new Map(this.clients.map(({ client, count }) => [client, count]));
  }

  /** The clients that have places, each name by itself. */
  get clients(): NameShare<W>[] {
    return [...this.#held.holders.values()].flatMap(({ names }) => names);
  }

  /** A client has asked for a job, whatever becomes of it. */
  saw(client: string): void {
    this.#held.saw(client, this.#clock.monotonicMs());
  }

  /** Throws `concurrency_limited` where its client may hold no more, or where all places are taken by right. */
  take(waiter: W): void {
    for (const other of this.#whoGivesWay(waiter)) other.giveWay(lostPlace());
    this.#held.add(waiter, this.#clock.now());
  }

  /** Does nothing where it has no place any more. */
  leave(waiter: W): void {
    this.#held.remove(waiter);
  }

  /** Those whose places it takes: none where there is room. Throws where there is no place for it. */
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

  /** What the holder may have now. Of one that is alone, only its own bound counts. */
  #mostOf(holder: string): Amount {
    const { maxQueued } = this.#boundsOf(holder);
    const share = this.#held.hasOthersThan(holder, this.#clock.monotonicMs(), mayComeAgainMs)
      ? this.#shareOf(holder)
      : unlimited;
    return { count: maxQueued ?? share.count, bytes: share.bytes };
  }

  /** The places and bytes that are a holder's own. */
  #shareOf(holder: string): Amount {
    const { maxWaiting, maxWaitingBytes } = this.#limits;
    const { maxQueued, weight } = this.#boundsOf(holder);
    return { count: maxQueued ?? quarterOf(maxWaiting, weight), bytes: quarterOf(maxWaitingBytes, weight) };
  }

  /** What is a name's own of what its holder may have, while other names want some. */
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

  /** Whether there is room for one more of this size, once so much has become free. */
  #hasRoom(freed: Amount, bytes: number): boolean {
    const { maxWaiting, maxWaitingBytes } = this.#limits;
    return this.taken - freed.count < maxWaiting && this.#held.bytes - freed.bytes + bytes <= maxWaitingBytes;
  }

  /** The newest of the holder that is furthest beyond its share, as many as it takes; null where that is not enough. */
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

/** Whether one more of this size is within so much. A single job of any size may wait. */
function isWithin(held: Amount, bytes: number, most: Amount): boolean {
  return held.count < most.count && (held.count === 0 || held.bytes + bytes <= most.bytes);
}

function isBeyond({ count, bytes }: Amount, share: Amount): boolean {
  return count > share.count || (count > 1 && bytes > share.bytes);
}

function less(held: Amount, freed: Amount): Amount {
  return { count: held.count - freed.count, bytes: held.bytes - freed.bytes };
}

/** The first of them, as many as are enough; null where they are not, or where one too many would be taken. */
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

/** Not by its own time limit, but it has waited in vain all the same. */
function lostPlace(): RelayError {
  const why = 'it had more waiting than its own share (MODEL_API_CLIENT_MAX_QUEUE), and others came';
  return new RelayError('queue_timeout', `this client lost a place in the queue: ${why}`);
}

/** A queue that was full for a shorter time is not reported. */
const leastMs = 10_000;
/** In a queue that stays full, a place that becomes free is taken again within this time. */
const gapMs = 5000;

/** Owns since when the queue has been full. */
export class FullQueue {
  readonly #clock: Clock;
  /** The beginning by the monotonic clock, and in milliseconds since the epoch. */
  #begun: { readonly ms: number; readonly at: number } | null = null;
  /** Null while no place is free. */
  #freeMs: number | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Called when a place was taken or has become free. */
  changed(isPlaceFree: boolean): void {
    if (isPlaceFree) this.#freeMs ??= this.#clock.monotonicMs();
    else this.#filled();
  }

  /** Milliseconds since the epoch; null where it is not full, or not for long enough. */
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

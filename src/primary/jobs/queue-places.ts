import { holderOf, optionHolder } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import { RelayError } from '../../shared/errors.js';
import { type BoundsOf, quarterOf } from '../access/clients.js';
import { type Amount, type ClientShare, FairShare, fits, type Sharer } from '../fairness/fair-share.js';

export interface PlaceLimits {
  /** Maximum number of jobs that wait for a slot. */
  readonly maxWaiting: number;
  /** Maximum bytes of text of all waiting jobs. */
  readonly maxWaitingBytes: number;
}

/** Clients that divide the same places: the key holders and other clients, or the users of one key. */
interface Level {
  /** Places and bytes that all of them may use together. */
  readonly room: Amount;
  readonly used: Amount;
  /** Part of `used` that the client of the new job uses. */
  readonly ownUse: Amount;
  /** Number of other clients that are active and have no waiting job. */
  readonly reserving: number;
  /** Quarters of the room that the client may use while others are active. */
  readonly weight: number;
  /** Number of places that replaces these quarters; null if its key has no such option. */
  readonly maxQueued: number | null;
}

/** Level with the result of its division. */
interface Division extends Level {
  /** Part of `room` that this client may use; infinite if it is the only active one. */
  readonly share: Amount;
  /** Number of places reserved for other clients. */
  readonly reserved: number;
}

/**
 * Owns the places in the queue. While other clients are active, a client has at most its share, and a full queue
 * refuses every job; no job loses its place. Each active client without a waiting job has a reserved place, as long as
 * at most a quarter of the places is reserved. Only a client without a waiting job can take a reserved place. A key
 * holder and its sub-clients count as one client, and divide its places by the same rule.
 */
export class QueuePlaces<W extends Sharer> {
  readonly #limits: PlaceLimits;
  readonly #boundsOf: BoundsOf;
  readonly #clock: Clock;
  readonly #waiting = new FairShare<W>();
  /** Active clients without a waiting job; a key holder and its sub-clients are one client. */
  readonly #recentHolders: RecentClients;
  /** Active users without a waiting job, for each key that has sub-clients and each person with keys; in order of requests. */
  readonly #recentUsers = new Map<string, RecentClients>();
  #refusedFull = 0;
  #refusedBound = 0;

  constructor(limits: PlaceLimits, boundsOf: BoundsOf, clock: Clock) {
    this.#limits = limits;
    this.#boundsOf = boundsOf;
    this.#clock = clock;
    this.#recentHolders = this.#createRecent();
  }

  get taken(): number {
    return this.#waiting.count;
  }

  /** Jobs refused since the start, because the queue was full or because of their client's limit. */
  get refused(): { readonly full: number; readonly bound: number } {
    return { full: this.#refusedFull, bound: this.#refusedBound };
  }

  /** Places by client; clients without places are omitted. */
  get counts(): ReadonlyMap<string, number> {
    return new Map(this.clients.map(({ client, count }) => [client, count]));
  }

  /** Clients that have places; each sub-client is listed separately. */
  get clients(): ClientShare<W>[] {
    return this.#waiting.clients;
  }

  /** Records that a client sent a request, even if the request is refused. */
  recordRequest(client: string): void {
    const holder = holderOf(client);
    if (client !== holder) {
      const users = this.#recentUsers.get(holder) ?? this.#createRecent();
      this.#recentUsers.delete(holder);
      this.#recentUsers.set(holder, users);
    }
    this.#noteActivity(client);
    this.#forgetInactive();
  }

  /** Removes keys whose users are no longer active. The one with the oldest request is the first. */
  #forgetInactive(): void {
    for (const [holder, users] of this.#recentUsers) {
      if (users.countOthers('') > 0 || this.#waiting.holderShare(holder).count > 0) return;
      this.#recentUsers.delete(holder);
    }
  }

  /** Takes a place. Throws `concurrency_limited` if the client may have no more places, or if the queue is full. */
  takePlace(waiter: W): void {
    this.#checkPlace(waiter);
    const { client } = waiter;
    this.#waiting.add(waiter, this.#clock.now());
    this.#recentHolders.remove(holderOf(client));
    this.#recentUsers.get(holderOf(client))?.remove(client);
  }

  /** Frees the place of a job. Does nothing for a job without a place. */
  leave(waiter: W): void {
    if (this.#waiting.remove(waiter)) this.#noteActivity(waiter.client);
  }

  /** Remembers so many clients that all reservations are known even if each place belongs to a different client. */
  #createRecent(): RecentClients {
    const { maxWaiting } = this.#limits;
    return new RecentClients(maxWaiting + quarterOf(maxWaiting) + 1, this.#clock);
  }

  /** Makes a client without waiting jobs active from now on. */
  #noteActivity(client: string): void {
    const holder = holderOf(client);
    if (this.#waiting.holderShare(client).count === 0) this.#recentHolders.add(holder);
    if (this.#waiting.clientShare(client).count === 0) this.#recentUsers.get(holder)?.add(client);
  }

  #checkPlace({ client, bytes }: Sharer): void {
    const { maxWaiting, maxWaitingBytes } = this.#limits;
    const [queue, key] = this.#divisionsOf(client);
    if (!fits(queue.ownUse, bytes, queue.share)) throw this.#refuseBound(this.#shareMessage(client, queue));
    if (!fits(key.ownUse, bytes, key.share)) throw this.#refuseBound(userShareMessage(key));
    this.#checkKey(client);
    if (this.taken >= maxWaiting || this.#waiting.bytes + bytes > maxWaitingBytes)
      throw this.#refuseFull('the queue is full');
    if (this.#takesReserved(queue, bytes))
      throw this.#refuseFull(`${reservedPlaces(queue, 'in the queue')} for other active clients`);
    if (this.#takesReserved(key, bytes))
      throw this.#refuseBound(`${reservedPlaces(key, 'of its key')} for other active users of the key`);
  }

  /** Throws if a key that a person has made has as many waiting jobs as its option `queue` allows. */
  #checkKey(client: string): void {
    const key = optionHolder(client);
    const { maxQueued } = this.#boundsOf(key);
    if (key === holderOf(client) || maxQueued === null) return;
    const shares = this.clients.filter((share) => optionHolder(share.client) === key);
    const count = shares.reduce((sum, share) => sum + share.count, 0);
    if (count >= maxQueued)
      throw this.#refuseBound(
        `its key has ${jobs(count)}, and its limit is ${maxQueued} (the option queue of its key)`,
      );
  }

  /** Returns how all clients divide the queue, and how the users of one key divide the share of the key. */
  #divisionsOf(client: string): [queue: Division, key: Division] {
    const { maxWaiting, maxWaitingBytes } = this.#limits;
    const holder = holderOf(client);
    const [waiting, ownUse] = [this.#waiting, this.#waiting.holderShare(client)];
    const room = { count: maxWaiting, bytes: maxWaitingBytes };
    const reserving = this.#recentHolders.countOthers(holder);
    const queue = divided({ room, used: waiting, ownUse, reserving, ...this.#boundsOf(holder) });
    const key = divided({
      room: { count: Math.min(room.count, queue.share.count), bytes: Math.min(room.bytes, queue.share.bytes) },
      used: ownUse,
      ownUse: waiting.clientShare(client),
      reserving: this.#recentUsers.get(holder)?.countOthers(client) ?? 0,
      ...{ weight: 1, maxQueued: null },
    });
    return [queue, key];
  }

  /**
   * Whether a job would take a place that is reserved for another client. A client without a waiting job may take any
   * free place. With each place, the average size of a text is reserved.
   */
  #takesReserved({ room, used, ownUse, reserved }: Division, bytes: number): boolean {
    if (ownUse.count === 0 || reserved === 0) return false;
    const { maxWaiting, maxWaitingBytes } = this.#limits;
    const reservedBytes = (reserved * maxWaitingBytes) / maxWaiting;
    return !fits({ count: used.count + reserved, bytes: used.bytes + reservedBytes }, bytes, room);
  }

  #shareMessage(client: string, { ownUse, share, room }: Division): string {
    const holder = holderOf(client);
    const whose = client === holder ? 'it' : 'its key';
    if (this.#boundsOf(holder).maxQueued !== null && ownUse.count >= share.count)
      return `${whose} has ${jobs(ownUse.count)}, and its limit is ${share.count} (the option queue of its key)`;
    const of = 'of the queue while other clients are active (MODEL_API_MAX_QUEUE)';
    return `${whose} has ${useAndShare(ownUse, share, room)} ${of}`;
  }

  #refuseFull(why: string): RelayError {
    this.#refusedFull++;
    const message = `all slots are taken and ${why} (MODEL_API_MAX_CONCURRENT, MODEL_API_MAX_QUEUE)`;
    return new RelayError('concurrency_limited', message);
  }

  #refuseBound(why: string): RelayError {
    this.#refusedBound++;
    return new RelayError('concurrency_limited', `this client may not wait: ${why}`);
  }
}

/** Returns the share of one client of a level, and the places that are reserved for others. */
function divided(level: Level): Division {
  const { room, used, ownUse, reserving, weight, maxQueued } = level;
  const isAlone = reserving === 0 && used.count === ownUse.count;
  const shareOf = (whole: number) => (isAlone ? Number.POSITIVE_INFINITY : quarterOf(whole, weight));
  const share = { count: maxQueued ?? shareOf(room.count), bytes: shareOf(room.bytes) };
  return { ...level, share, reserved: Math.min(reserving, quarterOf(room.count)) };
}

function userShareMessage({ ownUse, share, room }: Division): string {
  return `it has ${useAndShare(ownUse, share, room)} of its key while other users of the key are active`;
}

/** Returns the part of a message that compares what a client uses with its share. */
function useAndShare(ownUse: Amount, share: Amount, room: Amount): string {
  return ownUse.count < share.count
    ? `${ownUse.bytes} bytes of waiting text, and its share is ${share.bytes} of ${room.bytes} bytes`
    : `${jobs(ownUse.count)}, and its share is ${share.count} of ${room.count} places`;
}

function reservedPlaces({ reserved }: Division, whose: string): string {
  return reserved === 1 ? `the last place ${whose} is reserved` : `the last ${reserved} places ${whose} are reserved`;
}

function jobs(count: number): string {
  return count === 1 ? '1 waiting job' : `${count} waiting jobs`;
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

/** A client stays active for ten minutes after its last request. */
const activeMs = 600_000;

/** Owns the list of active clients without a waiting job. At most `maxClients` are remembered, the most recent ones. */
export class RecentClients {
  readonly #clock: Clock;
  readonly #maxClients: number;
  /** Time of the last request by client, monotonic; in order of time. */
  readonly #requestMs = new Map<string, number>();

  constructor(maxClients: number, clock: Clock) {
    this.#maxClients = maxClients;
    this.#clock = clock;
  }

  /** Adds a client, which is active from now on. */
  add(client: string): void {
    this.#requestMs.delete(client);
    this.#requestMs.set(client, this.#clock.monotonicMs());
    const [oldest] = this.#requestMs.keys();
    if (this.#requestMs.size > this.#maxClients && oldest !== undefined) this.#requestMs.delete(oldest);
  }

  remove(client: string): void {
    this.#requestMs.delete(client);
  }

  /** Returns the number of active clients without a waiting job, except this one. */
  countOthers(client: string): number {
    const nowMs = this.#clock.monotonicMs();
    for (const [each, requestMs] of this.#requestMs) {
      if (nowMs - requestMs < activeMs) break;
      this.#requestMs.delete(each);
    }
    return this.#requestMs.size - (this.#requestMs.has(client) ? 1 : 0);
  }
}

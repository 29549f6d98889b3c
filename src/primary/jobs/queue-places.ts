import { type ClientText, holderOf, optionHolder } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import { RelayError } from '../../shared/errors.js';
import type { CommonShare } from '../../shared/fairness/fair-queue.js';
import type { BoundsOf } from '../access/clients.js';
import { type Amount, type ClientShare, FairShare, fits, quarterOf, type Sharer } from '../fairness/fair-share.js';

export interface PlaceLimits {
  /** Maximum number of jobs that wait for a slot. */
  readonly maxWaiting: number;
  /** Maximum bytes of text of all waiting jobs. */
  readonly maxWaitingBytes: number;
}

/** A job that waits. */
interface Waiter extends Sharer {
  readonly share?: CommonShare | null;
}

/** QueuePart of the queue: that of a common share, of a key holder, or of one client. */
interface QueuePart {
  readonly kind: 'group' | 'holder' | 'client';
  readonly name: string;
  readonly use: Amount;
  /** Quarters of the whole that it may use while others are active. */
  readonly weight: number;
  /** Number of places that replaces these quarters; null if its key has no such option. */
  readonly maxQueued: number | null;
}

/** What a part is a part of: the queue, or the next larger part. */
interface Whole {
  readonly kind: keyof typeof wholes;
  readonly room: Amount;
  readonly used: Amount;
}

/** Result of the rule for one part. */
interface Division {
  readonly whole: Whole;
  readonly part: QueuePart;
  /** Places and bytes that the part may use of `whole`; infinite if no other part of it is active. */
  readonly share: Amount;
  /** Number of places reserved for other parts. */
  readonly reserved: number;
}

const wholes = {
  queue: { of: 'of the queue', in: 'in the queue', others: 'clients' },
  group: { of: 'of its group', in: 'of its group', others: 'members of the group' },
  holder: { of: 'of its key', in: 'of its key', others: 'users of the key' },
};

/**
 * Owns the places in the queue. While other clients are active, a client has at most its share, and a full queue
 * refuses every job; no job loses its place. Each active client without a waiting job has a reserved place, as long as
 * at most a quarter of the places is reserved. Only a client without a waiting job can take a reserved place. A key
 * holder and its sub-clients count as one client, and divide its places by the same rule; so do clients with a common
 * share.
 */
export class QueuePlaces<W extends Waiter> {
  readonly #limits: PlaceLimits;
  readonly #boundsOf: BoundsOf;
  readonly #clock: Clock;
  readonly #waiting = new FairShare<W>();
  /** Active clients without a waiting job; a key holder and its sub-clients are one client. */
  readonly #recentHolders: RecentClients;
  /**
   * Active members without a waiting job, for each common share, each key that has sub-clients and each person with keys;
   * in order of requests.
   */
  readonly #recentMembers = new Map<string, RecentClients>();
  /** Places by the name of the common share. */
  readonly #inShares = new Map<string, Amount>();
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
  get counts(): ReadonlyMap<ClientText, number> {
    return new Map(this.clients.map(({ client, count }) => [client, count]));
  }

  /** Clients that have places; each sub-client is listed separately. */
  get clients(): ClientShare<W>[] {
    return this.#waiting.clients;
  }

  /** Records that a client sent a request, even if the request is refused. */
  recordRequest(client: ClientText, share: CommonShare | null = null): void {
    const holder = holderOf(client);
    for (const whole of [share?.name ?? [], client === holder ? [] : holder].flat()) {
      const members = this.#recentMembers.get(whole) ?? this.#createRecent();
      this.#recentMembers.delete(whole);
      this.#recentMembers.set(whole, members);
    }
    this.#noteActivity({ client, share });
    this.#forgetInactive();
  }

  /** Removes lists of members that are no longer active. The one with the oldest request is the first. */
  #forgetInactive(): void {
    for (const [whole, members] of this.#recentMembers) {
      const isUsed = this.#inShares.has(whole) || this.#waiting.hasHolder(whole);
      if (isUsed || members.countOthers('') > 0) return;
      this.#recentMembers.delete(whole);
    }
  }

  /** Takes a place. Throws `concurrency_limited` if the client may have no more places, or if the queue is full. */
  takePlace(waiter: W): void {
    this.#checkPlace(waiter);
    this.#waiting.addMember(waiter, this.#clock.now());
    this.#countInShare(waiter, 1);
  }

  /** Frees the place of a job. Does nothing for a job without a place. */
  leave(waiter: W): void {
    if (!this.#waiting.removeMember(waiter)) return;
    this.#countInShare(waiter, -1);
    this.#noteActivity(waiter);
  }

  /** Calls `change`, which replaces the common share of a job. The job keeps its place. */
  changeShare(waiter: W, change: () => void): void {
    const hasPlace = this.#waiting.has(waiter);
    if (hasPlace) this.#countInShare(waiter, -1);
    change();
    if (hasPlace) this.#countInShare(waiter, 1);
  }

  /** Counts a waiting job, whose client then needs no reserved place, or one that no longer waits. */
  #countInShare({ client, share, bytes }: Waiter, sign: 1 | -1): void {
    if (share) {
      const { count, bytes: total } = this.#useOf(share);
      if (count + sign > 0) this.#inShares.set(share.name, { count: count + sign, bytes: total + sign * bytes });
      else this.#inShares.delete(share.name);
    }
    if (sign > 0)
      for (const { name, recent } of this.#membershipsOf({ client, share: share ?? null })) recent?.removeClient(name);
  }

  /** Remembers so many clients that all reservations are known even if each place belongs to a different client. */
  #createRecent(): RecentClients {
    const { maxWaiting } = this.#limits;
    return new RecentClients(maxWaiting + quarterOf(maxWaiting) + 1, this.#clock);
  }

  /** Makes a client without waiting jobs active from now on. */
  #noteActivity(client: Pick<Waiter, 'client' | 'share'>): void {
    for (const { name, use, recent } of this.#membershipsOf(client)) if (use.count === 0) recent?.addClient(name);
  }

  #checkPlace(waiter: Waiter): void {
    const { maxWaiting, maxWaitingBytes } = this.#limits;
    const { client, bytes } = waiter;
    const divisions = this.#divisionsOf(waiter);
    for (const division of divisions)
      if (!fits(division.part.use, bytes, division.share)) throw this.#refuseBound(shareMessage(client, division));
    this.#checkKey(client);
    if (this.taken >= maxWaiting || this.#waiting.bytes + bytes > maxWaitingBytes)
      throw this.#refuseFull('the queue is full');
    for (const division of divisions) if (this.#takesReserved(division, bytes)) throw this.#refuseReserved(division);
  }

  /** Throws if a key that a person has made has as many waiting jobs as its option `queue` allows. */
  #checkKey(client: ClientText): void {
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

  /** Returns the parts of the queue that a job of this client would be in, the largest first. */
  #partsOf({ client, share }: Pick<Waiter, 'client' | 'share'>): QueuePart[] {
    const holder = holderOf(client);
    const parts: QueuePart[] = [
      { kind: 'holder', name: holder, use: this.#waiting.holderShare(client), ...this.#boundsOf(holder) },
      { kind: 'client', name: client, use: this.#waiting.clientShare(client), weight: 1, maxQueued: null },
    ];
    if (!share) return parts;
    const { name } = share;
    return [{ kind: 'group', name, use: this.#useOf(share), weight: share.weight(), maxQueued: null }, ...parts];
  }

  #useOf({ name }: CommonShare): Amount {
    return this.#inShares.get(name) ?? { count: 0, bytes: 0 };
  }

  /** Returns the parts of a client, each with the active ones beside it that have no waiting job, if they are recorded. */
  #membershipsOf(client: Pick<Waiter, 'client' | 'share'>) {
    return this.#partsOf(client).map((part, index, parts) => {
      const whole = parts[index - 1];
      return { ...part, recent: whole ? this.#recentMembers.get(whole.name) : this.#recentHolders };
    });
  }

  /** Applies the rule to each part of a client. */
  #divisionsOf(client: Pick<Waiter, 'client' | 'share'>): Division[] {
    const { maxWaiting: count, maxWaitingBytes: bytes } = this.#limits;
    let whole: Whole = { kind: 'queue', room: { count, bytes }, used: this.#waiting };
    return this.#membershipsOf(client).map(({ recent, ...part }) => {
      const division = divided(whole, part, recent?.countOthers(part.name) ?? 0);
      const room = {
        count: Math.min(whole.room.count, division.share.count),
        bytes: Math.min(whole.room.bytes, division.share.bytes),
      };
      whole = { kind: part.kind === 'group' ? 'group' : 'holder', room, used: part.use };
      return division;
    });
  }

  /**
   * Whether a job would take a place that is reserved for another client. A client without a waiting job may take any
   * free place. With each place, the average size of a text is reserved.
   */
  #takesReserved({ whole: { room, used }, part, reserved }: Division, bytes: number): boolean {
    if (part.use.count === 0 || reserved === 0) return false;
    const { maxWaiting, maxWaitingBytes } = this.#limits;
    const reservedBytes = (reserved * maxWaitingBytes) / maxWaiting;
    return !fits({ count: used.count + reserved, bytes: used.bytes + reservedBytes }, bytes, room);
  }

  #refuseReserved({ whole, reserved }: Division): RelayError {
    const { in: where, others } = wholes[whole.kind];
    const places = reserved === 1 ? `the last place ${where} is` : `the last ${reserved} places ${where} are`;
    const message = `${places} reserved for other active ${others}`;
    return whole.kind === 'queue' ? this.#refuseFull(message) : this.#refuseBound(message);
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

/**
 * Returns the share of one part of a whole, and the places that are reserved for other parts. `reserving`: number of
 * other parts that are active and have no waiting job.
 */
function divided(whole: Whole, part: QueuePart, reserving: number): Division {
  const isAlone = reserving === 0 && whole.used.count === part.use.count;
  const shareOf = (room: number) => (isAlone ? Number.POSITIVE_INFINITY : quarterOf(room, part.weight));
  const share = { count: part.maxQueued ?? shareOf(whole.room.count), bytes: shareOf(whole.room.bytes) };
  return { whole, part, share, reserved: Math.min(reserving, quarterOf(whole.room.count)) };
}

/** Returns the message that compares what a part uses with its share. */
function shareMessage(client: ClientText, { whole, part, share }: Division): string {
  const { kind, name, use, maxQueued } = part;
  const whose = kind === 'group' ? 'its group' : name === client ? 'it' : 'its key';
  const isFull = use.count >= share.count;
  if (isFull && maxQueued !== null)
    return `${whose} has ${jobs(use.count)}, and its limit is ${share.count} (the option queue of its key)`;
  const { of, others } = wholes[whole.kind];
  const variable = whole.kind === 'queue' ? ' (MODEL_API_MAX_QUEUE)' : '';
  const figures = isFull
    ? `${jobs(use.count)}, and its share is ${share.count} of ${whole.room.count} places`
    : `${use.bytes} bytes of waiting text, and its share is ${share.bytes} of ${whole.room.bytes} bytes`;
  return `${whose} has ${figures} ${of} while other ${others} are active${variable}`;
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
  addClient(client: string): void {
    this.#requestMs.delete(client);
    this.#requestMs.set(client, this.#clock.monotonicMs());
    const [oldest] = this.#requestMs.keys();
    if (this.#requestMs.size > this.#maxClients && oldest !== undefined) this.#requestMs.delete(oldest);
  }

  removeClient(client: string): void {
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

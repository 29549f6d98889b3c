import { holderOf } from '../../shared/client.js';
import { LinkedList, type Node } from './linked-list.js';

/** An item that uses a part of a shared resource. Client and bytes may not change while it is counted. */
export interface Sharer {
  readonly client: string;
  readonly bytes: number;
}

/** Number of items, and their total bytes. */
export interface Amount {
  readonly count: number;
  readonly bytes: number;
}

/** Items of one client or sub-client. */
export interface NameShare<M> extends Amount {
  readonly client: string;
  readonly oldest: M;
  /** Arrival of the oldest item, in milliseconds since the epoch. */
  readonly oldestAt: number;
}

interface Arrived<M> {
  readonly member: M;
  /** Rises with each arrival. */
  readonly number: number;
  /** Arrival, in milliseconds since the epoch. */
  readonly at: number;
}

interface HeldMembers<M> {
  /** Items in order of arrival. */
  readonly members: LinkedList<Arrived<M>>;
  count: number;
  bytes: number;
}

interface NodesOfSharer<M> {
  readonly ofName: Node<Arrived<M>>;
  readonly ofHolder: Node<Arrived<M>>;
}

interface Sighting {
  readonly name: string;
  readonly atMs: number;
}

/** Tracks the two most recent clients, to answer how long ago a client other than a given one was active. */
class LastSeen {
  #last: Sighting | null = null;
  /** The latest sighting of a client other than the last one. */
  #other: Sighting | null = null;

  saw(name: string, nowMs: number): void {
    if (this.#last !== null && this.#last.name !== name) this.#other = this.#last;
    this.#last = { name, atMs: nowMs };
  }

  /** Returns the milliseconds since any other client was seen; infinite if none was. */
  sinceOthersThan(name: string, nowMs: number): number {
    const seen = this.#last?.name === name ? this.#other : this.#last;
    return seen === null ? Number.POSITIVE_INFINITY : nowMs - seen.atMs;
  }
}

/** Items of one key holder by sub-client. Most clients have no sub-clients. */
export class HolderShare<M extends Sharer> implements Amount {
  /** Items of the holder and all sub-clients. */
  readonly #held: HeldMembers<M> = { members: new LinkedList(), count: 0, bytes: 0 };
  readonly #byName = new Map<string, HeldMembers<M>>();
  readonly #nodes = new Map<M, NodesOfSharer<M>>();
  readonly #seen = new LastSeen();
  readonly #holder: string;
  #hasNames = false;

  constructor(holder: string) {
    this.#holder = holder;
  }

  /** Whether the holder has ever used a sub-client. */
  get hasNames(): boolean {
    return this.#hasNames;
  }

  get count(): number {
    return this.#held.count;
  }

  get bytes(): number {
    return this.#held.bytes;
  }

  /** Items of the holder and all sub-clients, in order of arrival. */
  get members(): LinkedList<Arrived<M>> {
    return this.#held.members;
  }

  get names(): NameShare<M>[] {
    return [...this.#byName].flatMap(([client, { members, count, bytes }]) => {
      const oldest = members.first;
      return oldest === undefined ? [] : [{ client, count, bytes, oldest: oldest.member, oldestAt: oldest.at }];
    });
  }

  get oldest(): M | undefined {
    return this.#held.members.first?.member;
  }

  /** The oldest item of the sub-client with the most bytes. */
  get oldestOfGreediest(): M | undefined {
    return greediest(this.#byName.values())?.members.first?.member;
  }

  /** Iterates in order of arrival. */
  *[Symbol.iterator](): Generator<M> {
    for (const { member } of this.#held.members) yield member;
  }

  /** Records that a sub-client sent a request, even if the request is refused. */
  saw(client: string, nowMs: number): void {
    this.#seen.saw(client, nowMs);
    this.#hasNames ||= client !== this.#holder;
  }

  amountOf(client: string): Amount {
    return this.#byName.get(client) ?? nothing;
  }

  /** Returns whether another sub-client has items, or sent a request within `withinMs`. */
  hasOthersThan(client: string, nowMs: number, withinMs: number): boolean {
    return this.count > this.amountOf(client).count || this.#seen.sinceOthersThan(client, nowMs) < withinMs;
  }

  /** Adds an item. Only for `FairShare`, like `remove`. */
  add(member: M, number: number, at: number): void {
    const held = this.#byName.get(member.client) ?? { members: new LinkedList(), count: 0, bytes: 0 };
    this.#byName.set(member.client, held);
    const numbered = { member, number, at };
    const ofName = held.members.append(numbered);
    this.#nodes.set(member, { ofName, ofHolder: this.#held.members.append(numbered) });
    for (const each of [held, this.#held]) change(each, 1, member.bytes);
  }

  /** Removes an item. Returns whether it was counted. */
  remove(member: M): boolean {
    const [nodes, held] = [this.#nodes.get(member), this.#byName.get(member.client)];
    if (nodes === undefined || held === undefined) return false;
    this.#nodes.delete(member);
    held.members.remove(nodes.ofName);
    this.#held.members.remove(nodes.ofHolder);
    for (const each of [held, this.#held]) change(each, -1, -member.bytes);
    if (held.count === 0) this.#byName.delete(member.client);
    return true;
  }

  /**
   * Yields the items to evict in order, each time the newest item of the sub-client with the most items. `mayGive` is
   * called before each with the remaining amount of a sub-client, and excludes it by returning false. No item may be
   * added or removed during the iteration.
   */
  *newest(mayGive: (client: string, left: Amount) => boolean = () => true): Generator<M> {
    const names = [...this.#byName].map(([client, { members, count, bytes }]) => {
      const backwards = members.backwards();
      return { client, count, bytes, backwards, next: backwards.next() };
    });
    for (;;) {
      const giving = names.filter((name) => name.next.done !== true && mayGive(name.client, name));
      const [name] = giving.sort((a, b) => b.count - a.count || numberOf(b.next) - numberOf(a.next));
      if (name === undefined || name.next.done === true) return;
      const { member } = name.next.value;
      yield member;
      name.count--;
      name.bytes -= member.bytes;
      name.next = name.backwards.next();
    }
  }
}

/**
 * Counts the part of a shared resource that each client uses. A key holder and all its sub-clients count as one client.
 */
export class FairShare<M extends Sharer> implements Amount {
  /** Shares by holder. A holder that has ever used a sub-client stays, even without items. */
  readonly #byHolder = new Map<string, HolderShare<M>>();
  readonly #seen = new LastSeen();
  #lastNumber = 0;
  #count = 0;
  #bytes = 0;

  get count(): number {
    return this.#count;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get holders(): ReadonlyMap<string, HolderShare<M>> {
    return this.#byHolder;
  }

  /** Returns the share of the holder of this client; an empty one if the holder has no items. */
  of(client: string): HolderShare<M> {
    const holder = holderOf(client);
    return this.#byHolder.get(holder) ?? new HolderShare<M>(holder);
  }

  /** Records that a client sent a request, even if the request is refused. */
  saw(client: string, nowMs: number): void {
    const holder = holderOf(client);
    this.#seen.saw(holder, nowMs);
    if (client !== holder) this.#byHolder.set(holder, this.of(client));
    this.#byHolder.get(holder)?.saw(client, nowMs);
  }

  /** Returns whether another holder has items, or sent a request within `withinMs`. */
  hasOthersThan(holder: string, nowMs: number, withinMs: number): boolean {
    return this.#count > this.of(holder).count || this.#seen.sinceOthersThan(holder, nowMs) < withinMs;
  }

  /** Adds an item. `at` is the time in milliseconds since the epoch. */
  add(member: M, at: number): void {
    const own = this.of(member.client);
    this.#byHolder.set(holderOf(member.client), own);
    own.add(member, ++this.#lastNumber, at);
    this.#count++;
    this.#bytes += member.bytes;
  }

  /** Removes an item. Returns whether it was counted. */
  remove(member: M): boolean {
    const own = this.of(member.client);
    if (!own.remove(member)) return false;
    this.#count--;
    this.#bytes -= member.bytes;
    if (own.count === 0 && !own.hasNames) this.#byHolder.delete(holderOf(member.client));
    return true;
  }

  /** The holder with the most bytes; if several have as many, the holder of the oldest item. */
  get greediest(): HolderShare<M> | undefined {
    return greediest(this.#byHolder.values());
  }
}

export const nothing: Amount = { count: 0, bytes: 0 };

function greediest<H extends Pick<HeldMembers<unknown>, 'bytes' | 'members'>>(all: Iterable<H>): H | undefined {
  const numberOfFirst = ({ members }: H) => members.first?.number ?? Number.POSITIVE_INFINITY;
  let most: H | undefined;
  for (const held of all) {
    const isMore = most === undefined || held.bytes > most.bytes;
    if (isMore || (held.bytes === most?.bytes && numberOfFirst(held) < numberOfFirst(most))) most = held;
  }
  return most;
}

function change(held: { count: number; bytes: number }, count: number, bytes: number): void {
  held.count += count;
  held.bytes += bytes;
}

function numberOf(next: IteratorResult<{ readonly number: number }, void>): number {
  return next.done === true ? 0 : next.value.number;
}

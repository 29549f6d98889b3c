import { holderOf } from '../../shared/client.js';
import { LinkedList, type Node } from './linked-list.js';

/** One that takes a part of what all share. Neither may change while it does. */
export interface Sharer {
  readonly client: string;
  readonly bytes: number;
}

/** So many of them, and so many bytes together. */
export interface Amount {
  readonly count: number;
  readonly bytes: number;
}

/** What one name has. */
export interface NameShare<M> extends Amount {
  readonly client: string;
  readonly oldest: M;
  /** Since when it has that, milliseconds since the epoch. */
  readonly oldestAt: number;
}

interface Arrived<M> {
  readonly member: M;
  /** Counts up with each. */
  readonly number: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

interface HeldMembers<M> {
  /** In order of arrival. */
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

/** Owns when clients were last seen, as far as it takes to say how long ago another one than a given one was. */
class LastSeen {
  #last: Sighting | null = null;
  /** The latest of a client that is not the last one's. */
  #other: Sighting | null = null;

  saw(name: string, nowMs: number): void {
    if (this.#last !== null && this.#last.name !== name) this.#other = this.#last;
    this.#last = { name, atMs: nowMs };
  }

  /** Milliseconds since any other client was seen; infinite if none ever was. */
  sinceOthersThan(name: string, nowMs: number): number {
    const seen = this.#last?.name === name ? this.#other : this.#last;
    return seen === null ? Number.POSITIVE_INFINITY : nowMs - seen.atMs;
  }
}

/** What one holder has, by the names that it speaks for: most clients have one, their own. */
export class HolderShare<M extends Sharer> implements Amount {
  /** Of all names. */
  readonly #held: HeldMembers<M> = { members: new LinkedList(), count: 0, bytes: 0 };
  readonly #byName = new Map<string, HeldMembers<M>>();
  readonly #nodes = new Map<M, NodesOfSharer<M>>();
  readonly #seen = new LastSeen();
  readonly #holder: string;
  #hasNames = false;

  constructor(holder: string) {
    this.#holder = holder;
  }

  /** Whether it has ever spoken for another name than its own. */
  get hasNames(): boolean {
    return this.#hasNames;
  }

  get count(): number {
    return this.#held.count;
  }

  get bytes(): number {
    return this.#held.bytes;
  }

  /** Of all names, in order of arrival. */
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

  /** The oldest one of the name with the most bytes. */
  get oldestOfGreediest(): M | undefined {
    return greediest(this.#byName.values())?.members.first?.member;
  }

  /** In order of arrival. */
  *[Symbol.iterator](): Generator<M> {
    for (const { member } of this.#held.members) yield member;
  }

  /** A name has asked for something, whatever becomes of it. */
  saw(client: string, nowMs: number): void {
    this.#seen.saw(client, nowMs);
    this.#hasNames ||= client !== this.#holder;
  }

  amountOf(client: string): Amount {
    return this.#byName.get(client) ?? nothing;
  }

  /** Whether another name has something, or has asked within this time. */
  hasOthersThan(client: string, nowMs: number, withinMs: number): boolean {
    return this.count > this.amountOf(client).count || this.#seen.sinceOthersThan(client, nowMs) < withinMs;
  }

  /** Called by `FairShare` alone, as the one below. */
  add(member: M, number: number, at: number): void {
    const held = this.#byName.get(member.client) ?? { members: new LinkedList(), count: 0, bytes: 0 };
    this.#byName.set(member.client, held);
    const numbered = { member, number, at };
    const ofName = held.members.append(numbered);
    this.#nodes.set(member, { ofName, ofHolder: this.#held.members.append(numbered) });
    for (const each of [held, this.#held]) change(each, 1, member.bytes);
  }

  /** Returns whether it was there. */
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
   * Who would give way first: again and again the newest of the name that has most, of those that `mayGive` lets. It is
   * asked before each with what the name has left then. Nothing may change meanwhile.
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
 * Owns what each client has of something that all share, counted as it comes and goes. The holder of a key and all names
 * that it speaks for are one client, and share what that one has.
 */
export class FairShare<M extends Sharer> implements Amount {
  /** Also of the holders of keys that have ever spoken for somebody and have nothing. */
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

  /** What the holder of this client has. */
  of(client: string): HolderShare<M> {
    const holder = holderOf(client);
    return this.#byHolder.get(holder) ?? new HolderShare<M>(holder);
  }

  /** A client has asked for something, whatever becomes of it. */
  saw(client: string, nowMs: number): void {
    const holder = holderOf(client);
    this.#seen.saw(holder, nowMs);
    if (client !== holder) this.#byHolder.set(holder, this.of(client));
    this.#byHolder.get(holder)?.saw(client, nowMs);
  }

  /** Whether another holder has something, or has asked within this time. */
  hasOthersThan(holder: string, nowMs: number, withinMs: number): boolean {
    return this.#count > this.of(holder).count || this.#seen.sinceOthersThan(holder, nowMs) < withinMs;
  }

  /** `at`: milliseconds since the epoch. */
  add(member: M, at: number): void {
    const own = this.of(member.client);
    this.#byHolder.set(holderOf(member.client), own);
    own.add(member, ++this.#lastNumber, at);
    this.#count++;
    this.#bytes += member.bytes;
  }

  /** Does nothing if it is not there. Returns whether it was. */
  remove(member: M): boolean {
    const own = this.of(member.client);
    if (!own.remove(member)) return false;
    this.#count--;
    this.#bytes -= member.bytes;
    if (own.count === 0 && !own.hasNames) this.#byHolder.delete(holderOf(member.client));
    return true;
  }

  /** The holder with the most bytes, and of equal ones the one with the oldest member. */
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

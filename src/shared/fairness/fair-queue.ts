import { type ClientText, holderOf } from '../client.js';
import { LinkedList, type Node } from './linked-list.js';

/** Turns that the holders of several clients divide: they count as one holder. */
export interface CommonShare {
  /** No holder has this name. */
  readonly name: string;
  /** Returns the number of members per round. */
  weight(): number;
}

/** A waiting member of a queue. */
export interface Member {
  readonly client: ClientText;
  /** Absent or null if the holder of the client has turns of its own. */
  readonly share?: CommonShare | null;
  /** Members of a lane are taken in order of arrival: a first member that cannot go blocks its lane. */
  readonly lane: string;
  /** Whether the member goes before the other members of its client. */
  readonly isUrgent?: boolean;
}

/** Returns whether a member may go now. Called only for first members of lanes. */
type MayGo<M> = (member: M) => boolean;

/** A line of waiting members. */
interface Line<M> extends Iterable<M> {
  readonly size: number;
  add(member: M, isFirst: boolean): void;
  /** Removes a member. Returns whether it was in the line. */
  remove(member: M): boolean;
  takeNext(mayGo: MayGo<M>): M | null;
  /** Returns the position of a member, from 1; 0 if the member is not in the line. */
  positionOf(member: M): number;
}

/** A member of a lane, with its number in the order of the line. */
interface Numbered<M> {
  readonly member: M;
  readonly number: number;
}

interface NodesOfMember<M> {
  readonly inLine: Node<M>;
  readonly inLane: Node<Numbered<M>>;
}

/** The line of one client: first come, first served, except that blocked lanes are skipped. */
class Lanes<M extends Member> implements Line<M> {
  readonly #line = new LinkedList<M>();
  readonly #lanes = new Map<string, LinkedList<Numbered<M>>>();
  readonly #nodes = new Map<M, NodesOfMember<M>>();
  #lowest = 0;
  #highest = 0;

  get size(): number {
    return this.#nodes.size;
  }

  [Symbol.iterator](): Iterator<M> {
    return this.#line[Symbol.iterator]();
  }

  add(member: M, isFirst: boolean): void {
    const lane = this.#lanes.get(member.lane) ?? new LinkedList<Numbered<M>>();
    this.#lanes.set(member.lane, lane);
    const numbered = { member, number: isFirst ? --this.#lowest : ++this.#highest };
    const inLine = isFirst ? this.#line.prepend(member) : this.#line.append(member);
    const inLane = isFirst ? lane.prepend(numbered) : lane.append(numbered);
    this.#nodes.set(member, { inLine, inLane });
  }

  remove(member: M): boolean {
    const [nodes, lane] = [this.#nodes.get(member), this.#lanes.get(member.lane)];
    if (nodes === undefined || lane === undefined) return false;
    this.#nodes.delete(member);
    this.#line.remove(nodes.inLine);
    lane.remove(nodes.inLane);
    if (lane.first === undefined) this.#lanes.delete(member.lane);
    return true;
  }

  takeNext(mayGo: MayGo<M>): M | null {
    let next: Numbered<M> | null = null;
    for (const { first } of this.#lanes.values()) {
      const isEarlier = first !== undefined && (next === null || first.number < next.number);
      if (isEarlier && mayGo(first.member)) next = first;
    }
    if (next === null) return null;
    this.remove(next.member);
    return next.member;
  }

  positionOf(member: M): number {
    return [...this.#line].indexOf(member) + 1;
  }
}

/** The line of one client, with its urgent members before all others. */
class RankedLanes<M extends Member> implements Line<M> {
  readonly #urgent = new Lanes<M>();
  readonly #ordinary = new Lanes<M>();

  get size(): number {
    return this.#urgent.size + this.#ordinary.size;
  }

  *[Symbol.iterator](): Generator<M> {
    yield* this.#urgent;
    yield* this.#ordinary;
  }

  add(member: M, isFirst: boolean): void {
    (member.isUrgent === true ? this.#urgent : this.#ordinary).add(member, isFirst);
  }

  remove(member: M): boolean {
    return this.#urgent.remove(member) || this.#ordinary.remove(member);
  }

  takeNext(mayGo: MayGo<M>): M | null {
    return this.#urgent.takeNext(mayGo) ?? this.#ordinary.takeNext(mayGo);
  }

  positionOf(member: M): number {
    const position = this.#ordinary.positionOf(member);
    return position === 0 ? this.#urgent.positionOf(member) : this.#urgent.size + position;
  }
}

/** A new line, with its rules, which may change. */
interface RuledLine<M> {
  readonly line: Line<M>;
  /** Returns the number of members taken from the line in one round. */
  weight(): number;
  /** Returns whether the line must be skipped for now. */
  mustWait(): boolean;
}

/** Clients of one kind, such as key holders, each with a line. */
interface Level<M> {
  /** Returns the name of the line for a member. */
  nameOf(member: M): string;
  openLine(member: M): RuledLine<M>;
}

/** A line, and the number of its members that may still be taken in this round. */
interface LineInRound<M> extends RuledLine<M> {
  left: number;
}

/** Takes members from lines by round robin. Skips a line that must wait, which keeps its place for later. */
class RoundRobin<M extends Member> implements Line<M> {
  readonly #level: Level<M>;
  /** Lines by name, the next one first. */
  readonly #lines = new Map<string, LineInRound<M>>();
  #size = 0;

  constructor(level: Level<M>) {
    this.#level = level;
  }

  get size(): number {
    return this.#size;
  }

  add(member: M, isFirst: boolean): void {
    const name = this.#level.nameOf(member);
    const entry = this.#lines.get(name) ?? this.#openLine(name, member);
    entry.line.add(member, isFirst);
    this.#size++;
  }

  #openLine(name: string, member: M): LineInRound<M> {
    const line = this.#level.openLine(member);
    const entry = { ...line, left: line.weight() };
    this.#lines.set(name, entry);
    return entry;
  }

  remove(member: M): boolean {
    const name = this.#level.nameOf(member);
    const line = this.#lines.get(name)?.line;
    if (line === undefined || !line.remove(member)) return false;
    this.#size--;
    if (line.size === 0) this.#lines.delete(name);
    return true;
  }

  takeNext(mayGo: MayGo<M>): M | null {
    for (const [name, entry] of this.#lines) {
      if (entry.mustWait()) continue;
      const member = entry.line.takeNext(mayGo);
      if (member === null) continue;
      this.#size--;
      entry.left--;
      if (entry.line.size === 0) this.#lines.delete(name);
      else if (entry.left <= 0) this.toEnd(member);
      return member;
    }
    return null;
  }

  /** Returns the line that a member would be in; undefined if it does not exist. */
  lineOf(member: M): Line<M> | undefined {
    return this.#lines.get(this.#level.nameOf(member))?.line;
  }

  /** Moves the line of a member behind all others. */
  toEnd(member: M): void {
    const name = this.#level.nameOf(member);
    const entry = this.#lines.get(name);
    if (entry === undefined) return;
    entry.left = entry.weight();
    this.#lines.delete(name);
    this.#lines.set(name, entry);
  }

  *[Symbol.iterator](): Generator<M> {
    let pending = this.#inOrder.map((entry) => ({ entry, members: entry.line[Symbol.iterator](), left: entry.left }));
    while (pending.length > 0) {
      const unfinished: typeof pending = [];
      for (const { entry, members, left } of pending) {
        const isOver = yield* taken(members, left);
        if (!isOver) unfinished.push({ entry, members, left: entry.weight() });
      }
      pending = unfinished;
    }
  }

  positionOf(member: M): number {
    const entry = this.#lines.get(this.#level.nameOf(member));
    const positionInLine = entry?.line.positionOf(member) ?? 0;
    if (entry === undefined || positionInLine === 0) return 0;
    const round = positionInLine <= entry.left ? 0 : Math.ceil((positionInLine - entry.left) / entry.weight());
    let position = positionInLine;
    let isAfter = false;
    for (const other of this.#inOrder) {
      const rounds = isAfter ? round : round + 1;
      if (other === entry) isAfter = true;
      else if (rounds > 0) position += Math.min(other.line.size, other.left + (rounds - 1) * other.weight());
    }
    return position;
  }

  /** Lines in the order in which they are served, with the waiting ones last. */
  get #inOrder(): LineInRound<M>[] {
    const lines = [...this.#lines.values()].map((entry) => ({ entry, mustWait: entry.mustWait() }));
    const inOrder = [...lines.filter(({ mustWait }) => !mustWait), ...lines.filter(({ mustWait }) => mustWait)];
    return inOrder.map(({ entry }) => entry);
  }
}

/** Yields up to `count` members. Returns whether there were fewer. */
function* taken<M>(members: Iterator<M>, count: number): Generator<M, boolean> {
  for (let number = 0; number < count; number++) {
    const { value, done } = members.next();
    if (done === true) return true;
    yield value;
  }
  return false;
}

/** Rules for key holders and other clients. They do not apply to sub-clients. */
interface HolderRules {
  /** Number of members taken per round. */
  weightOf(holder: ClientText): number;
  /** Whether the holder must be skipped for now. */
  mustWait(holder: ClientText): boolean;
}

/**
 * Owns the order of waiting members: a round robin of key holders and other clients, so that a client with many jobs
 * does not starve the others; a round robin of the sub-clients of a holder; within a sub-client, first come, first
 * served. Holders with a common share take turns among themselves, and count as one holder. The weight of a holder is its
 * number of members per round. All operations except the iteration and `positionOf` take constant time for any length of
 * a lane.
 */
export class FairQueue<M extends Member> implements Iterable<M> {
  readonly #shares: RoundRobin<M>;

  constructor({ weightOf = () => 1, mustWait = () => false }: Partial<HolderRules> = {}) {
    const clients: Level<M> = {
      nameOf: ({ client }) => client,
      openLine: () => ({ line: new RankedLanes<M>(), weight: () => 1, mustWait: () => false }),
    };
    const holders: Level<M> = {
      nameOf: ({ client }) => holderOf(client),
      openLine: ({ client }) => {
        const holder = holderOf(client);
        return { line: new RoundRobin(clients), weight: () => weightOf(holder), mustWait: () => mustWait(holder) };
      },
    };
    const openShare = (share: CommonShare): RuledLine<M> => ({
      ...{ line: new RoundRobin(holders), weight: () => share.weight(), mustWait: () => false },
    });
    this.#shares = new RoundRobin({
      nameOf: (member) => member.share?.name ?? holders.nameOf(member),
      openLine: (member) => (member.share ? openShare(member.share) : holders.openLine(member)),
    });
  }

  get size(): number {
    return this.#shares.size;
  }

  /** Adds a member at the end of its line. A member may be added once. */
  add(member: M): void {
    this.#shares.add(member, false);
  }

  /** Adds a member before all others of its client. */
  addFirst(member: M): void {
    this.#shares.add(member, true);
  }

  /** Removes a member. Returns whether it was in the queue. */
  remove(member: M): boolean {
    return this.#shares.remove(member);
  }

  /**
   * Removes and returns the next member that may go; null if none may. The sub-client and its holder then move behind
   * the others, unless more of their members may be taken in this round.
   */
  takeNext(mayGo: MayGo<M> = () => true): M | null {
    return this.#shares.takeNext(mayGo);
  }

  /** Moves the holder of a member behind all others, or behind those with the same share. */
  toEnd(member: M): void {
    const level = member.share ? this.#shares.lineOf(member) : this.#shares;
    if (level instanceof RoundRobin) level.toEnd(member);
  }

  /** Iterates in the order in which members would be taken if all may go and no member is added. */
  [Symbol.iterator](): Iterator<M> {
    return this.#shares[Symbol.iterator]();
  }

  /** Returns the position in the order of the iteration, from 1; 0 if the member does not wait here. */
  positionOf(member: M): number {
    return this.#shares.positionOf(member);
  }
}

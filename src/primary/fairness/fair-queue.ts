import { holderOf } from '../../shared/client.js';
import { LinkedList, type Node } from './linked-list.js';

/** One that waits. */
export interface Member {
  readonly client: string;
  /** Within a lane the order is that of arrival: while its first member can't go, none of it can. */
  readonly lane: string;
}

/** Whether a member that is next in its lane may go now. */
type MayGo<M> = (member: M) => boolean;

/** Those that wait in one line. */
interface Line<M> extends Iterable<M> {
  readonly size: number;
  add(member: M, isFirst: boolean): void;
  /** Returns whether it was there. */
  remove(member: M): boolean;
  takeNext(mayGo: MayGo<M>): M | null;
  /** How many are taken until this one is, itself included. */
  positionOf(member: M): number;
}

/** A member of a lane, with its number in the order of the whole line. */
interface Numbered<M> {
  readonly member: M;
  readonly number: number;
}

interface NodesOfMember<M> {
  readonly inLine: Node<M>;
  readonly inLane: Node<Numbered<M>>;
}

/** The line of one name: first come, first served, past the lanes whose first member can't go. */
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

/** How the lines of one level take turns. */
interface TurnRules {
  /** How many members of a line are taken before it is the turn of the next one. */
  weightOf(name: string): number;
  /** Nobody is taken from the line of that name now. */
  mustWait(name: string): boolean;
}

/** A line, and how many more are taken from it before its turn ends. */
interface LineInTurn<M> {
  readonly line: Line<M>;
  left: number;
}

const equalTurns: TurnRules = { weightOf: () => 1, mustWait: () => false };

/** Round-robin between lines. A line that must wait keeps its order, and stands behind those that need not. */
class Turns<M extends Member> implements Line<M> {
  readonly #nameOf: (client: string) => string;
  readonly #openLine: () => Line<M>;
  readonly #rules: TurnRules;
  /** By name, in order of their turns. */
  readonly #lines = new Map<string, LineInTurn<M>>();
  #size = 0;

  /** `nameOf`: in whose line a client waits. */
  constructor(nameOf: (client: string) => string, openLine: () => Line<M>, rules: TurnRules) {
    this.#nameOf = nameOf;
    this.#openLine = openLine;
    this.#rules = rules;
  }

  get size(): number {
    return this.#size;
  }

  add(member: M, isFirst: boolean): void {
    const name = this.#nameOf(member.client);
    const turn = this.#lines.get(name) ?? { line: this.#openLine(), left: this.#rules.weightOf(name) };
    this.#lines.set(name, turn);
    turn.line.add(member, isFirst);
    this.#size++;
  }

  remove(member: M): boolean {
    const name = this.#nameOf(member.client);
    const line = this.#lines.get(name)?.line;
    if (line === undefined || !line.remove(member)) return false;
    this.#size--;
    if (line.size === 0) this.#lines.delete(name);
    return true;
  }

  takeNext(mayGo: MayGo<M>): M | null {
    for (const [name, turn] of this.#lines) {
      if (this.#rules.mustWait(name)) continue;
      const member = turn.line.takeNext(mayGo);
      if (member === null) continue;
      this.#size--;
      turn.left--;
      if (turn.line.size === 0) this.#lines.delete(name);
      else if (turn.left <= 0) this.toEnd(member.client);
      return member;
    }
    return null;
  }

  /** The turn of its line comes after those of all others. */
  toEnd(client: string): void {
    const name = this.#nameOf(client);
    const turn = this.#lines.get(name);
    if (turn === undefined) return;
    turn.left = this.#rules.weightOf(name);
    this.#lines.delete(name);
    this.#lines.set(name, turn);
  }

  *[Symbol.iterator](): Generator<M> {
    let turns = this.#inOrder.map(([name, { line, left }]) => ({ name, members: line[Symbol.iterator](), left }));
    while (turns.length > 0) {
      const unfinished: typeof turns = [];
      for (const turn of turns) {
        const { name, members, left } = turn;
        const isOver = yield* taken(members, left);
        if (!isOver) unfinished.push({ ...turn, left: this.#rules.weightOf(name) });
      }
      turns = unfinished;
    }
  }

  positionOf(member: M): number {
    const name = this.#nameOf(member.client);
    const own = this.#lines.get(name);
    const inOwn = own?.line.positionOf(member) ?? 0;
    if (own === undefined || inOwn === 0) return 0;
    const round = inOwn <= own.left ? 0 : Math.ceil((inOwn - own.left) / this.#rules.weightOf(name));
    let position = inOwn;
    let isAfter = false;
    for (const [other, { line, left }] of this.#inOrder) {
      const rounds = isAfter ? round : round + 1;
      if (other === name) isAfter = true;
      else if (rounds > 0) position += Math.min(line.size, left + (rounds - 1) * this.#rules.weightOf(other));
    }
    return position;
  }

  /** Those that must wait come last. */
  get #inOrder(): [name: string, turn: LineInTurn<M>][] {
    const lines = [...this.#lines].map((entry) => ({ entry, mustWait: this.#rules.mustWait(entry[0]) }));
    const inOrder = [...lines.filter(({ mustWait }) => !mustWait), ...lines.filter(({ mustWait }) => mustWait)];
    return inOrder.map(({ entry }) => entry);
  }
}

/** So many of them. Returns whether there were fewer. */
function* taken<M>(members: Iterator<M>, count: number): Generator<M, boolean> {
  for (let number = 0; number < count; number++) {
    const { value, done } = members.next();
    if (done === true) return true;
    yield value;
  }
  return false;
}

/**
 * Owns the order of those that wait: round-robin between the holders of API keys and all other clients, so that one with
 * many jobs does not starve the others; for one holder, round-robin between the names that it speaks for; for one name,
 * first come, first served. A holder with a weight has as many turns in each round. Every operation takes the same time
 * at any length of a lane, except the iteration and `positionOf`.
 */
export class FairQueue<M extends Member> implements Iterable<M> {
  readonly #holders: Turns<M>;

  /** `rules`: of the holders. */
  constructor(rules: Partial<TurnRules> = {}) {
    const lineOfName = () => new Lanes<M>();
    const lineOfHolder = () => new Turns<M>((client) => client, lineOfName, equalTurns);
    this.#holders = new Turns<M>(holderOf, lineOfHolder, { ...equalTurns, ...rules });
  }

  get size(): number {
    return this.#holders.size;
  }

  /** A member may be added once. */
  add(member: M): void {
    this.#holders.add(member, false);
  }

  /** Before all others of its client. */
  addFirst(member: M): void {
    this.#holders.add(member, true);
  }

  /** Returns whether it was there. */
  remove(member: M): boolean {
    return this.#holders.remove(member);
  }

  /** Takes out the next member that may go. The turn of its name, and of its holder, comes again after all others had one. */
  takeNext(mayGo: MayGo<M> = () => true): M | null {
    return this.#holders.takeNext(mayGo);
  }

  /** The turn of this client's holder comes after those of all others. */
  toEnd(client: string): void {
    this.#holders.toEnd(client);
  }

  /** All members in the order in which they are taken if all may go and nobody else comes. */
  [Symbol.iterator](): Iterator<M> {
    return this.#holders[Symbol.iterator]();
  }

  /** The place in that order, from 1; 0 where it does not wait here. */
  positionOf(member: M): number {
    return this.#holders.positionOf(member);
  }
}

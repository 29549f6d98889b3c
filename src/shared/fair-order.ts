import { holderOf } from './client.js';

/** Those who wait in one line. */
interface Line<T> extends Iterable<T> {
  readonly size: number;
  add(client: string, member: T): void;
  takeNext(): T | null;
  /** Returns whether it was there. */
  remove(client: string, member: T): boolean;
  /** How many are taken until this one is, itself included. */
  positionOf(client: string, member: T): number;
}

/** First come, first served. */
class PlainLine<T> implements Line<T> {
  readonly #members = new Set<T>();
  /** Goes through them once, past those that were removed and on to those that have come since. */
  readonly #upcoming = this.#members.values();

  get size(): number {
    return this.#members.size;
  }

  [Symbol.iterator](): Iterator<T> {
    return this.#members.values();
  }

  add(_client: string, member: T): void {
    this.#members.add(member);
  }

  takeNext(): T | null {
    const { value, done } = this.#upcoming.next();
    if (done === true) return null;
    this.#members.delete(value);
    return value;
  }

  remove(_client: string, member: T): boolean {
    return this.#members.delete(member);
  }

  positionOf(_client: string, member: T): number {
    return [...this.#members].indexOf(member) + 1;
  }
}

/** The line of one holder, in which its names take turns. */
function lineOfNames<T>(): Line<T> {
  return new FairOrder<T>(
    (name) => name,
    () => new PlainLine(),
  );
}

/**
 * Owns the order of those who wait: round-robin between the holders of API keys and all other clients, so that one with
 * many jobs does not starve the others; for one holder, round-robin between the names that it speaks for; for one name,
 * first come first served. The line of a holder that is held back keeps its order, and nobody is taken from it. Every
 * operation takes the same time at any length, except where it says otherwise.
 */
export class FairOrder<T> implements Line<T> {
  readonly #nameOf: (client: string) => string;
  readonly #openLine: () => Line<T>;
  /** The lines by holder, in order of their turns. */
  readonly #lines = new Map<string, Line<T>>();
  /** Holders that are held back, and the lines of those of them that have one. */
  readonly #heldBack = new Set<string>();
  readonly #heldLines = new Map<string, Line<T>>();
  #size = 0;

  /** `nameOf`: in whose line a client waits. */
  constructor(nameOf: (client: string) => string = holderOf, openLine: () => Line<T> = lineOfNames) {
    this.#nameOf = nameOf;
    this.#openLine = openLine;
  }

  get size(): number {
    return this.#size;
  }

  /** A member may be added once. */
  add(client: string, member: T): void {
    const name = this.#nameOf(client);
    const lines = this.#linesOf(name);
    const line = lines.get(name) ?? this.#openLine();
    lines.set(name, line);
    line.add(client, member);
    this.#size++;
  }

  /** From now on nobody of this client's holder is taken; the others go on. */
  hold(client: string): void {
    const name = this.#nameOf(client);
    this.#heldBack.add(name);
    moveLine(name, this.#lines, this.#heldLines);
  }

  /** The holder takes part again, after all others had a turn. Returns whether it was held back. */
  resume(client: string): boolean {
    const name = this.#nameOf(client);
    const wasHeldBack = this.#heldBack.delete(name);
    if (wasHeldBack) moveLine(name, this.#heldLines, this.#lines);
    return wasHeldBack;
  }

  /**
   * All members in the order in which they are taken if nobody else comes, each line that is held back as if it came
   * back as the last one. Takes time with their number.
   */
  *[Symbol.iterator](): Generator<T> {
    let lines = this.#inTurn().map(([, line]) => line[Symbol.iterator]());
    while (lines.length > 0) {
      const left: typeof lines = [];
      for (const line of lines) {
        const { value, done } = line.next();
        if (done === true) continue;
        yield value;
        left.push(line);
      }
      lines = left;
    }
  }

  /** In the order of the iteration. Takes time with clients and line length. */
  positionOf(client: string, member: T): number {
    const name = this.#nameOf(client);
    const before = (this.#linesOf(name).get(name)?.positionOf(client, member) ?? 0) - 1;
    let position = 0;
    let isAfter = false;
    for (const [other, { size }] of this.#inTurn()) {
      if (other === name) {
        position += before + 1;
        isAfter = true;
      } else position += Math.min(size, isAfter ? before : before + 1);
    }
    return position;
  }

  /**
   * Takes out the member whose turn it is. Its holder's next one waits until all other holders had a turn. A holder that
   * must wait is held back from now on.
   */
  takeNext(mustWait: (holder: string) => boolean = () => false): T | null {
    for (const [name, line] of this.#lines) {
      if (mustWait(name)) {
        this.hold(name);
        continue;
      }
      const member = line.takeNext();
      this.#size--;
      this.#lines.delete(name);
      if (line.size > 0) this.#lines.set(name, line);
      return member;
    }
    return null;
  }

  remove(client: string, member: T): boolean {
    const name = this.#nameOf(client);
    const lines = this.#linesOf(name);
    const line = lines.get(name);
    if (!line?.remove(client, member)) return false;
    this.#size--;
    if (line.size === 0) lines.delete(name);
    return true;
  }

  #inTurn(): [name: string, line: Line<T>][] {
    return [...this.#lines, ...this.#heldLines];
  }

  #linesOf(name: string): Map<string, Line<T>> {
    return this.#heldBack.has(name) ? this.#heldLines : this.#lines;
  }
}

/** To the end of the others, where there is one. */
function moveLine<T>(name: string, from: Map<string, Line<T>>, to: Map<string, Line<T>>): void {
  const line = from.get(name);
  if (line === undefined) return;
  from.delete(name);
  to.set(name, line);
}

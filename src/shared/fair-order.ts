interface Line<T> {
  /** In order of arrival. */
  readonly members: Set<T>;
  /** Goes through them once, past those that were removed and on to those that have come since. */
  readonly upcoming: SetIterator<T>;
}

/**
 * Owns the order of those who wait: first come first served for one client, round-robin between clients, so that a
 * client with many jobs does not starve the others. The line of a client that is held back keeps its order, and nobody
 * is taken from it. Every operation takes the same time at any length, except where it says otherwise.
 */
export class FairOrder<T> {
  /** The lines by client, in order of their turns. */
  readonly #lines = new Map<string, Line<T>>();
  /** Clients that are held back, and the lines of those of them that have one. */
  readonly #heldBack = new Set<string>();
  readonly #heldLines = new Map<string, Line<T>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** A member may be added once. */
  add(client: string, member: T): void {
    const line = this.#lineOf(client) ?? this.#openLine(client);
    line.members.add(member);
    this.#size++;
  }

  /** From now on nobody of this client is taken; the others go on. */
  hold(client: string): void {
    this.#heldBack.add(client);
    moveLine(client, this.#lines, this.#heldLines);
  }

  /** The client takes part again, after all others had a turn. Returns whether it was held back. */
  resume(client: string): boolean {
    const wasHeldBack = this.#heldBack.delete(client);
    if (wasHeldBack) moveLine(client, this.#heldLines, this.#lines);
    return wasHeldBack;
  }

  /**
   * All members in the order in which they are taken if nobody else comes, each line that is held back as if it came
   * back as the last one. Takes time with their number.
   */
  *[Symbol.iterator](): Generator<T> {
    let lines = this.#inTurn().map(([, { members }]) => members.values());
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

  /** How many are taken until this one is, itself included, in the order of the iteration. Takes time with clients and line length. */
  positionOf(client: string, member: T): number {
    const before = [...(this.#lineOf(client)?.members ?? [])].indexOf(member);
    let position = 0;
    let isAfter = false;
    for (const [other, { members }] of this.#inTurn()) {
      if (other === client) {
        position += before + 1;
        isAfter = true;
      } else position += Math.min(members.size, isAfter ? before : before + 1);
    }
    return position;
  }

  /**
   * Takes out the member whose turn it is. Its client's next one waits until all other clients had a turn. A client that
   * must wait is held back from now on.
   */
  takeNext(mustWait: (client: string) => boolean = () => false): T | null {
    for (const [client, line] of this.#lines) {
      if (mustWait(client)) {
        this.hold(client);
        continue;
      }
      const { value } = line.upcoming.next();
      this.remove(client, value as T);
      if (this.#lines.delete(client)) this.#lines.set(client, line);
      return value as T;
    }
    return null;
  }

  /** Returns whether it was there. */
  remove(client: string, member: T): boolean {
    const { members } = this.#lineOf(client) ?? {};
    if (!members?.delete(member)) return false;
    this.#size--;
    if (members.size === 0) this.#linesOf(client).delete(client);
    return true;
  }

  #inTurn(): [client: string, line: Line<T>][] {
    return [...this.#lines, ...this.#heldLines];
  }

  #lineOf(client: string): Line<T> | undefined {
    return this.#linesOf(client).get(client);
  }

  #linesOf(client: string): Map<string, Line<T>> {
    return this.#heldBack.has(client) ? this.#heldLines : this.#lines;
  }

  #openLine(client: string): Line<T> {
    const members = new Set<T>();
    const line = { members, upcoming: members.values() };
    this.#linesOf(client).set(client, line);
    return line;
  }
}

/** To the end of the others, where there is one. */
function moveLine<T>(client: string, from: Map<string, Line<T>>, to: Map<string, Line<T>>): void {
  const line = from.get(client);
  if (line === undefined) return;
  from.delete(client);
  to.set(client, line);
}

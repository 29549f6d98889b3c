interface Line<T> {
  /** In order of arrival. */
  readonly members: Set<T>;
  /** Goes through them once, past those that were removed and on to those that have come since. */
  readonly upcoming: SetIterator<T>;
}

/**
 * Owns the order of those who wait: first come first served for one client, round-robin between clients, so that a
 * client with many jobs does not starve the others. Every operation takes the same time at any length, except where it
 * says otherwise.
 */
export class FairOrder<T> {
  /** The lines by client, in order of their turns. */
  readonly #lines = new Map<string, Line<T>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** A member may be added once. */
  add(client: string, member: T): void {
    const line = this.#lines.get(client) ?? this.#openLine(client);
    line.members.add(member);
    this.#size++;
  }

  /** All members in the order in which they are taken if nobody else comes. Takes time with their number. */
  *[Symbol.iterator](): Generator<T> {
    let lines = Array.from(this.#lines.values(), ({ members }) => members.values());
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

  /** How many are taken until this one is, itself included, if nobody else comes. Takes time with clients and line length. */
  positionOf(client: string, member: T): number {
    const before = [...(this.#lines.get(client)?.members ?? [])].indexOf(member);
    let position = 0;
    let isAfter = false;
    for (const [other, { members }] of this.#lines) {
      if (other === client) {
        position += before + 1;
        isAfter = true;
      } else position += Math.min(members.size, isAfter ? before : before + 1);
    }
    return position;
  }

  /** Takes out the member whose turn it is. Its client's next one waits until all other clients had a turn. */
  takeNext(): T | null {
    for (const [client, line] of this.#lines) {
      const { value } = line.upcoming.next();
      this.remove(client, value as T);
      if (this.#lines.delete(client)) this.#lines.set(client, line);
      return value as T;
    }
    return null;
  }

  /** Returns whether it was there. */
  remove(client: string, member: T): boolean {
    const { members } = this.#lines.get(client) ?? {};
    if (!members?.delete(member)) return false;
    this.#size--;
    if (members.size === 0) this.#lines.delete(client);
    return true;
  }

  #openLine(client: string): Line<T> {
    const members = new Set<T>();
    const line = { members, upcoming: members.values() };
    this.#lines.set(client, line);
    return line;
  }
}

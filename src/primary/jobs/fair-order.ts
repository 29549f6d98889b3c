import { LinkedList, type Node } from '../linked-list.js';

interface Line<T> {
  readonly client: string;
  readonly members: LinkedList<T>;
  place: Node<Line<T>>;
}

/** A place in the order, to be given back with `remove`. */
export interface Place<T> {
  readonly line: Line<T>;
  readonly node: Node<T>;
}

/**
 * Owns the order of those who wait: first come first served for one client, round robin between clients, so that a
 * client with a long line does not starve the others. Every operation is O(1) at any length.
 */
export class FairOrder<T> {
  readonly #lines = new Map<string, Line<T>>();
  readonly #turns = new LinkedList<Line<T>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(client: string, member: T): Place<T> {
    const line = this.#lines.get(client) ?? this.#openLine(client);
    this.#size++;
    return { line, node: line.members.append(member) };
  }

  /** How many are taken until this one is, itself included, if nobody else comes. Takes time with clients and line length. */
  positionOf({ line, node }: Place<T>): number {
    const before = line.members.countBefore(node);
    let position = 0;
    let isAfter = false;
    for (const { members, client } of this.#turns) {
      if (client === line.client) {
        position += before + 1;
        isAfter = true;
      } else position += Math.min(members.size, isAfter ? before : before + 1);
    }
    return position;
  }

  /** Takes out the one whose turn it is; its client's next one waits until all other clients had a turn. */
  takeNext(): T | null {
    const line = this.#turns.first()?.value;
    const node = line?.members.first();
    if (line === undefined || node === undefined || node === null) return null;
    this.remove({ line, node });
    if (line.members.size > 0) this.#turns.moveToEnd(line.place);
    return node.value;
  }

  remove({ line, node }: Place<T>): void {
    line.members.remove(node);
    this.#size--;
    if (line.members.size > 0) return;
    this.#turns.remove(line.place);
    this.#lines.delete(line.client);
  }

  #openLine(client: string): Line<T> {
    const line = { client, members: new LinkedList<T>() } as Line<T>;
    line.place = this.#turns.append(line);
    this.#lines.set(client, line);
    return line;
  }
}

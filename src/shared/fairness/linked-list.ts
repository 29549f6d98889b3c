/** A node of at most one list. */
export interface Node<T> {
  readonly value: T;
  previous: Node<T>;
  next: Node<T>;
}

/**
 * A doubly linked list with operations in constant time. A Map whose first keys are deleted again and again becomes
 * slow.
 */
export class LinkedList<T> {
  /** Sentinel before the first and after the last node, without a value. */
  readonly #ring: Node<T>;

  constructor() {
    this.#ring = {} as Node<T>;
    link(this.#ring, this.#ring, this.#ring);
  }

  /** Iterates from first to last. The value yielded last may be removed during the iteration. */
  *[Symbol.iterator](): Generator<T> {
    for (let { next: node } = this.#ring; node !== this.#ring; ) {
      const { next, value } = node;
      yield value;
      node = next;
    }
  }

  append(value: T): Node<T> {
    return link({ value } as Node<T>, this.#ring.previous, this.#ring);
  }

  prepend(value: T): Node<T> {
    return link({ value } as Node<T>, this.#ring, this.#ring.next);
  }

  get first(): T | undefined {
    return this.#ring.next === this.#ring ? undefined : this.#ring.next.value;
  }

  /** Moves a node to the end. The node must be in this list, as for `remove`. */
  moveToEnd(node: Node<T>): void {
    this.remove(node);
    link(node, this.#ring.previous, this.#ring);
  }

  remove({ previous, next }: Node<T>): void {
    previous.next = next;
    next.previous = previous;
  }
}

function link<T>(node: Node<T>, previous: Node<T>, next: Node<T>): Node<T> {
  node.previous = previous;
  node.next = next;
  previous.next = node;
  next.previous = node;
  return node;
}

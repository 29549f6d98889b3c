/** A member of at most one list. */
export interface Node<T> {
  readonly value: T;
  previous: Node<T>;
  next: Node<T>;
}

/** A doubly linked list: every operation takes the same time at any length. A Map that loses its first keys does not. */
export class LinkedList<T> {
  /** Stands before the first and after the last; its own value is never read. */
  readonly #ring: Node<T>;

  constructor() {
    this.#ring = {} as Node<T>;
    link(this.#ring, this.#ring, this.#ring);
  }

  /** From first to last. The one that was yielded last may be removed meanwhile. */
  *[Symbol.iterator](): Generator<T> {
    for (let { next: node } = this.#ring; node !== this.#ring; ) {
      const { next, value } = node;
      yield value;
      node = next;
    }
  }

  /** From last to first. Nothing may change meanwhile. */
  *backwards(): Generator<T> {
    for (let { previous: node } = this.#ring; node !== this.#ring; node = node.previous) yield node.value;
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

  /** For a node of this list, as below. */
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

/** A member of at most one list. */
export interface Node<T> {
  readonly value: T;
  previous: Node<T>;
  next: Node<T>;
}

/** A doubly linked list: every operation takes the same time at any length. */
export class LinkedList<T> {
  readonly #ring: Node<T | null>;
  #size = 0;

  constructor() {
    const ring = { value: null } as Node<T | null>;
    ring.previous = ring;
    ring.next = ring;
    this.#ring = ring;
  }

  get size(): number {
    return this.#size;
  }

  first(): Node<T> | null {
    return this.#size === 0 ? null : (this.#ring.next as Node<T>);
  }

  /** From first to last. The one that was yielded last may be removed meanwhile. */
  *[Symbol.iterator](): Generator<T> {
    for (let node = this.#ring.next; node !== this.#ring; ) {
      const { next, value } = node;
      yield value as T;
      node = next;
    }
  }

  /** Takes time with the distance from the front. `node` must be in this list. */
  countBefore(node: Node<T>): number {
    let count = 0;
    for (let other = node.previous; other !== this.#ring; other = other.previous) count++;
    return count;
  }

  append(value: T): Node<T> {
    const last = this.#ring.previous;
    const node = { value, previous: last, next: this.#ring } as Node<T>;
    last.next = node;
    this.#ring.previous = node;
    this.#size++;
    return node;
  }

  /** `node` must be in this list. */
  remove(node: Node<T>): void {
    node.previous.next = node.next;
    node.next.previous = node.previous;
    this.#size--;
  }
}

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
    const ring = this.#ring as Node<T>;
    const node = { value, previous: ring, next: ring };
    this.#link(node);
    this.#size++;
    return node;
  }

  /** `node` must be in this list. */
  moveToEnd(node: Node<T>): void {
    unlink(node);
    this.#link(node);
  }

  /** `node` must be in this list. */
  remove(node: Node<T>): void {
    unlink(node);
    this.#size--;
  }

  #link(node: Node<T>): void {
    const ring = this.#ring as Node<T>;
    node.previous = ring.previous;
    node.next = ring;
    node.previous.next = node;
    ring.previous = node;
  }
}

function unlink({ previous, next }: Node<unknown>): void {
  previous.next = next;
  next.previous = previous;
}

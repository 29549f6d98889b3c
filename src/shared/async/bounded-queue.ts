type QueueEnding = { readonly error: unknown } | 'finished';

/**
 * Owns the items that have arrived and have not been taken yet. One writer, one reader. `onTake` is called after each
 * item taken: the writer keeps to the bound by counting those calls.
 */
export class BoundedQueue<T> implements AsyncIterableIterator<T, undefined> {
  readonly #onTake: () => void;
  #items: T[] = [];
  #head = 0;
  #ending: QueueEnding | undefined;
  #wakeReader: (() => void) | undefined;

  constructor(onTake: () => void = () => {}) {
    this.#onTake = onTake;
  }

  get isOver(): boolean {
    return this.#ending !== undefined;
  }

  push(item: T): void {
    if (this.#ending !== undefined) return;
    this.#items.push(item);
    this.#wake();
  }

  /** No more items will come. The reader gets those that wait, then the end. */
  finish(): void {
    this.#end('finished');
  }

  /** No more items will come. The reader gets those that wait, then the error. */
  fail(error: unknown): void {
    this.#end({ error });
  }

  /** The reader gets the error at once. Items that wait are dropped. */
  cut(error: unknown): void {
    if (this.#ending === 'finished' && this.#items.length === 0) return;
    this.#drop();
    this.#ending = { error };
    this.#wake();
  }

  async next(): Promise<IteratorResult<T, undefined>> {
    for (;;) {
      if (this.#head < this.#items.length) return { value: this.#take(), done: false };
      if (this.#ending === 'finished') return { value: undefined, done: true };
      if (this.#ending !== undefined) throw this.#ending.error;
      await new Promise<void>((resolve) => {
        this.#wakeReader = resolve;
      });
    }
  }

  return(): Promise<IteratorResult<T, undefined>> {
    this.#drop();
    this.#end('finished');
    return Promise.resolve({ value: undefined, done: true });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #take(): T {
    const item = this.#items[this.#head++] as T;
    // Compact when half of the array has been taken, so that a slow reader does not keep taken items in memory.
    if (this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    this.#onTake();
    return item;
  }

  #drop(): void {
    this.#items = [];
    this.#head = 0;
  }

  #end(ending: QueueEnding): void {
    this.#ending ??= ending;
    this.#wake();
  }

  #wake(): void {
    this.#wakeReader?.();
    this.#wakeReader = undefined;
  }
}

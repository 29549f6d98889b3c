type Ending = { readonly error: unknown } | 'finished';

/**
 * Owns what has arrived and has not been taken. One writer, one reader.
 * The writer watches `full` (or waits for `room`), so that a slow reader slows its own writer and nobody else.
 */
export class Inbox<T> implements AsyncIterableIterator<T, undefined> {
  readonly #limit: number;
  readonly #onTake: () => void;
  #items: T[] = [];
  #head = 0;
  #ending: Ending | undefined;
  #wakeReader: (() => void) | undefined;
  #wakeWriter: (() => void) | undefined;

  /** `onTake` is called after each item taken: the moment to let the source flow again. */
  constructor(limit: number, onTake: () => void = () => {}) {
    this.#limit = limit;
    this.#onTake = onTake;
  }

  get full(): boolean {
    return this.#items.length - this.#head >= this.#limit;
  }

  get over(): boolean {
    return this.#ending !== undefined;
  }

  push(item: T): void {
    if (this.#ending !== undefined) return;
    this.#items.push(item);
    this.#wake();
  }

  /** No more will come: the reader gets what is waiting, then the end. */
  finish(): void {
    this.#end('finished');
  }

  /** No more will come: the reader gets what is waiting, then the error. */
  fail(error: unknown): void {
    this.#end({ error });
  }

  /** The reader gets the error at once; what was waiting is dropped. */
  cut(error: unknown): void {
    if (this.#ending === 'finished' && this.#items.length === 0) return;
    this.#items = [];
    this.#head = 0;
    this.#ending = { error };
    this.#wake();
  }

  /** Resolves when there is room again, or when the inbox is over. */
  async room(): Promise<void> {
    while (this.full && !this.over) {
      await new Promise<void>((resolve) => {
        this.#wakeWriter = resolve;
      });
    }
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
    this.#items = [];
    this.#head = 0;
    this.#end('finished');
    return Promise.resolve({ value: undefined, done: true });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #take(): T {
    const item = this.#items[this.#head++] as T;
    // Half of it taken: what is left moves up, so that nothing taken is held for as long as the reader lags behind.
    if (this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    this.#wakeWriter?.();
    this.#wakeWriter = undefined;
    this.#onTake();
    return item;
  }

  #end(ending: Ending): void {
    this.#ending ??= ending;
    this.#wake();
  }

  #wake(): void {
    this.#wakeReader?.();
    this.#wakeReader = undefined;
    if (!this.over) return;
    this.#wakeWriter?.();
    this.#wakeWriter = undefined;
  }
}

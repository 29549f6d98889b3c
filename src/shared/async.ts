import { type Clock, endOfLoopTurn } from './clock.js';

/** As `Promise.withResolvers`, which Node 20 does not have. */
export function withResolvers<T = void>() {
  let settle = {} as { readonly resolve: (value: T) => void; readonly reject: (reason: unknown) => void };
  const promise = new Promise<T>((resolve, reject) => {
    settle = { resolve, reject };
  });
  return { promise, ...settle };
}

/** Rejects with the signal's reason as soon as it aborts; the promise itself goes on for those who share it. */
export async function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  let abort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/**
 * Coalesces the calls of one turn of the event loop: they share one call, which is made at its end. So no answer is older
 * than its question, and many requests at once cost few calls. A call under way is not joined: the loop would idle
 * until it ends, and each call would serve fewer requests.
 */
export function coalesced<T>(call: () => Promise<T>): () => Promise<T> {
  let next: Promise<T> | null = null;
  const begin = () => {
    next = null;
    return call();
  };
  return () => {
    next ??= endOfLoopTurn().then(begin);
    return next;
  };
}

/** Calls again only when the last answer is older than this. A failure is not kept. */
export function cached<T>(call: () => Promise<T>, maxAgeMs: number, clock: Clock): () => Promise<T> {
  let answer: Promise<T> | null = null;
  let askedMs = 0;
  const ask = () => {
    const asked = call();
    askedMs = clock.monotonicMs();
    answer = asked;
    asked.catch(() => {
      if (answer === asked) answer = null;
    });
    return asked;
  };
  return () => (answer !== null && clock.monotonicMs() - askedMs < maxAgeMs ? answer : ask());
}

/**
 * Makes one call at a time, with a pause after each if one is given, so that a crowd costs no more than one caller. All who ask meanwhile
 * share the next call: no answer is older than its question.
 */
export function oneAtATime<T>(call: () => Promise<T>, pause: () => Promise<unknown> = noPause): () => Promise<T> {
  let next: Promise<T> | null = null;
  let rested: Promise<unknown> = Promise.resolve();
  const begin = () => {
    next = null;
    const answer = call();
    rested = answer.then(pause, pause);
    return answer;
  };
  return () => {
    next ??= rested.then(begin);
    return next;
  };
}

/** Makes the calls of a crowd one after the other, in the order they came. */
export function inLine(): <T>(call: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (call) => {
    const answer = last.then(call);
    last = answer.then(noPause, noPause);
    return answer;
  };
}

/** As `inLine`, with a line for each name. */
export function inLines(): <T>(name: string, call: () => Promise<T>) => Promise<T> {
  const lasts = new Map<string, Promise<unknown>>();
  return (name, call) => {
    const answer = (lasts.get(name) ?? Promise.resolve()).then(call);
    const ended = answer.then(noPause, noPause).then(() => {
      if (lasts.get(name) === ended) lasts.delete(name);
    });
    lasts.set(name, ended);
    return answer;
  };
}

async function noPause(): Promise<void> {}

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

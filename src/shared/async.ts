import { type Clock, endOfLoopTurn } from './clock.js';

/** As `Promise.withResolvers`, which Node 20 does not have. */
export function withResolvers<T = void>() {
  let settle = {} as { readonly resolve: (value: T) => void; readonly reject: (reason: unknown) => void };
  const promise = new Promise<T>((resolve, reject) => {
    settle = { resolve, reject };
  });
  return { promise, ...settle };
}

/** Rejects with the signal's reason as soon as it aborts. The promise itself is not cancelled: others may share it. */
export async function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const aborted = withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/**
 * The callers of one turn of the event loop share one call, which is made at the end of the turn. No answer is older than
 * its question. A call under way is not joined: the loop would idle until it ends, and each call would serve fewer requests.
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

/** Calls again only when the last answer is older than this, or was a failure. */
export function cached<T>(call: () => Promise<T>, maxAgeMs: number, clock: Clock): () => Promise<T> {
  let answer: Promise<T> | null = null;
  let askedMs = 0;
  return () => {
    if (answer !== null && clock.monotonicMs() - askedMs < maxAgeMs) return answer;
    const asked = call();
    askedMs = clock.monotonicMs();
    answer = asked;
    asked.catch(() => {
      if (answer === asked) answer = null;
    });
    return asked;
  };
}

/**
 * Makes one call at a time, with a pause after each if one is given. All who ask during a call share the next one, so a crowd
 * costs no more than one caller, and no answer is older than its question.
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

/** Makes calls one after the other, in the order they came. */
export function inLine(): <T>(call: () => Promise<T>) => Promise<T> {
  const inLineOf = inLines();
  return (call) => inLineOf('', call);
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
 * Owns the items that have arrived and are not taken yet. It has one writer and one reader. It calls `onTake` after each
 * item that is taken; the writer counts these calls to stay within its bound.
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

  /** No more items come. The reader gets those that wait, then the end. */
  finish(): void {
    this.#ending ??= 'finished';
    this.#wake();
  }

  /** The same, with this error in place of the end. */
  fail(error: unknown): void {
    this.#ending ??= { error };
    this.#wake();
  }

  /** The reader gets the error at once. Items that wait are dropped. */
  cut(error: unknown): void {
    if (this.#ending === 'finished' && this.#items.length === 0) return;
    this.#items = [];
    this.#head = 0;
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

  async return(): Promise<IteratorResult<T, undefined>> {
    this.#items = [];
    this.#head = 0;
    this.finish();
    return { value: undefined, done: true };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #take(): T {
    const item = this.#items[this.#head++] as T;
    // Cuts the array when half of it is taken, so that a slow reader holds no taken items in memory.
    if (this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    this.#onTake();
    return item;
  }

  #wake(): void {
    this.#wakeReader?.();
    this.#wakeReader = undefined;
  }
}

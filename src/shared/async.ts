import { type Clock, yieldToEventLoop } from './clock.js';

/** Replaces `Promise.withResolvers`, which Node 20 does not have. */
export function withResolvers<T = void>() {
  let settle = {} as { readonly resolve: (value: T) => void; readonly reject: (reason: unknown) => void };
  const promise = new Promise<T>((resolve, reject) => {
    settle = { resolve, reject };
  });
  return { promise, ...settle };
}

/**
 * Waits for a promise. Rejects with the signal's reason as soon as it aborts. The promise itself is not cancelled,
 * because other callers may share it.
 */
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
 * Waits for a promise, but not longer than this time: then it returns what `late` returns, or rejects with what `late`
 * throws. The promise itself is not cancelled.
 */
export async function withLimit<T, L = undefined>(
  promise: Promise<T>,
  limitMs: number,
  clock: Pick<Clock, 'after'>,
  late: () => L = () => undefined as L,
): Promise<T | L> {
  const { promise: timer, resolve } = withResolvers();
  const stopTimer = clock.after(limitMs, resolve);
  try {
    return await Promise.race([promise, timer.then(late)]);
  } finally {
    stopTimer();
  }
}

/**
 * Returns a function whose callers in one turn of the event loop share one call, made at the end of the turn. So each
 * result is newer than its request. A running call is not shared: waiting for it would leave the event loop idle, and
 * each call would serve fewer requests.
 */
export function coalesced<T>(call: () => Promise<T>): () => Promise<T> {
  let next: Promise<T> | null = null;
  const begin = () => {
    next = null;
    return call();
  };
  return () => {
    next ??= yieldToEventLoop().then(begin);
    return next;
  };
}

/**
 * Returns a function that caches the result of a call. It calls again if the last result is older than `maxAgeMs` or
 * was a failure.
 */
export function cached<T>(call: () => Promise<T>, maxAgeMs: number, clock: Clock): () => Promise<T> {
  let answer: Promise<T> | null = null;
  let askedMs = 0;
  return () => {
    if (answer !== null && clock.monotonicMs() - askedMs < maxAgeMs) return answer;
    const reply = call();
    askedMs = clock.monotonicMs();
    answer = reply;
    reply.catch(() => {
      if (answer === reply) answer = null;
    });
    return reply;
  };
}

/**
 * Returns a function that makes one call at a time, with an optional pause after each. All callers during a call share
 * the next one, so that many callers cost no more than one, and each result is newer than its request.
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

/** Returns a function that makes calls one after the other, in order of arrival. */
export function inLine(): <T>(call: () => Promise<T>) => Promise<T> {
  const inLineOf = inLines();
  return (call) => inLineOf('', call);
}

/** Works like `inLine`, with a separate queue for each name. */
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

/** Returns a function that makes at most `max` calls at once. Other calls wait in order of arrival. */
export function atMost(max: number): <T>(call: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (call) => {
    if (running < max) running++;
    else await new Promise<void>((resolve) => void waiting.push(resolve));
    try {
      return await call();
    } finally {
      const next = waiting.shift();
      if (next === undefined) running--;
      else next();
    }
  };
}

async function noPause(): Promise<void> {}

type QueueEnding = { readonly error: unknown } | 'finished';

/**
 * Queue between one writer and one reader. It calls `onTake` after each item that is taken; the writer counts these
 * calls to limit the queue.
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

  /** Ends the queue. The reader gets the remaining items, then the end. */
  finish(): void {
    this.#ending ??= 'finished';
    this.#wake();
  }

  /** Ends the queue with an error. The reader gets the remaining items, then the error. */
  fail(error: unknown): void {
    this.#ending ??= { error };
    this.#wake();
  }

  /** Ends the queue at once with an error. Remaining items are dropped. */
  cut(error: unknown): void {
    if (this.#ending === 'finished' && this.#items.length === 0) return;
    this.#items = [];
    this.#head = 0;
    this.#ending = { error };
    this.#wake();
  }

  async next(): Promise<IteratorResult<T, undefined>> {
    for (;;) {
      if (this.#head < this.#items.length) return { value: this.#takeItem(), done: false };
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

  #takeItem(): T {
    const item = this.#items[this.#head++] as T;
    // Cuts the array when half of it has been taken, so that taken items do not stay in memory.
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

import { join } from 'node:path';
import { Piscina } from 'piscina';
import type { Clock } from '../../shared/clock.js';

/** A thread holds the tokenizer's ranks, about 70 MB: it goes when nobody has chatted for this long. */
const idleMs = 600_000;
const maxQueued = 1000;
/** No client waits longer than this for a figure that is an estimate anyway. */
const limitMs = 3000;
/** English text has about four bytes a token. */
const bytesPerToken = 4;

/** Counts tokens off the primary's loop, in one thread that is started when it is first needed. */
export class TokenCounter {
  readonly #pool: Piscina;
  readonly #clock: Clock;
  /** One for each count that is under way. */
  readonly #open = new Set<AbortController>();

  /** `onError` hears of a thread that could not start, or broke. */
  constructor(clock: Clock, onError: (error: unknown) => void, thread = join(__dirname, 'thread.js')) {
    this.#clock = clock;
    this.#pool = new Piscina({
      filename: thread,
      name: 'count',
      minThreads: 0,
      maxThreads: 1,
      idleTimeout: idleMs,
      maxQueue: maxQueued,
      atomics: 'async',
    });
    this.#pool.on('error', (error) => {
      onError(error);
      for (const count of this.#open) count.abort(); // the pool itself would wait for ever
    });
  }

  /** An estimate in any case: exact for the o200k tokenizer, from the bytes where the thread can't tell. */
  async count(texts: readonly string[]): Promise<number> {
    const spoken = texts.filter((text) => text !== '');
    const count = new AbortController();
    const stopTimer = this.#clock.after(limitMs, () => {
      count.abort();
      void this.#pool.run([]).catch(() => {}); // the thread goes with the count: only a new one has the pool start another
    });
    this.#open.add(count);
    try {
      return await this.#pool.run(spoken, { signal: count.signal });
    } catch {
      return spoken.reduce((sum, text) => sum + Math.ceil(Buffer.byteLength(text) / bytesPerToken), 0);
    } finally {
      stopTimer();
      this.#open.delete(count);
    }
  }

  close(): Promise<void> {
    return this.#pool.destroy();
  }
}

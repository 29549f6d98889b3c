import { join } from 'node:path';
import { Piscina } from 'piscina';

/** A thread holds the tokenizer's ranks, about 70 MB: it goes when nobody has chatted for this long. */
const idleMs = 600_000;
const maxQueued = 1000;
/** English text has about four bytes a token. */
const bytesPerToken = 4;

/** Counts tokens off the primary's loop, in one thread that is started when it is first needed. */
export class TokenCounter {
  readonly #pool = new Piscina({
    filename: join(__dirname, 'thread.js'),
    name: 'count',
    minThreads: 0,
    maxThreads: 1,
    idleTimeout: idleMs,
    maxQueue: maxQueued,
    atomics: 'async',
  });

  constructor(onError: (error: unknown) => void) {
    this.#pool.on('error', onError);
  }

  /** An estimate in any case: exact for the o200k tokenizer, from the bytes where the thread can't tell. */
  async count(texts: readonly string[]): Promise<number> {
    const spoken = texts.filter((text) => text !== '');
    try {
      return await this.#pool.run(spoken);
    } catch {
      return spoken.reduce((sum, text) => sum + Math.ceil(Buffer.byteLength(text) / bytesPerToken), 0);
    }
  }

  close(): Promise<void> {
    return this.#pool.destroy();
  }
}

import { join } from 'node:path';
import type { Clock } from '../../shared/clock.js';
import { LimitedThread } from './limited-thread.js';

/** A thread holds the tokenizer's ranks, about 70 MB: it goes when nobody has chatted for this long. */
const idleMs = 600_000;
/** No client waits longer than this for a figure that is an estimate anyway. */
const limitMs = 3000;
/** English text has about four bytes a token. */
const bytesPerToken = 4;

/** Estimates the tokens of these texts from their bytes. */
export function estimateTokens(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + Math.ceil(Buffer.byteLength(text) / bytesPerToken), 0);
}

/** Counts tokens off the primary's loop. */
export class TokenCounter {
  readonly #thread: LimitedThread<readonly string[], number>;

  /** `onError` hears of a thread that could not start, or broke. */
  constructor(clock: Clock, onError: (error: unknown) => void, file = join(__dirname, 'token-thread.js')) {
    this.#thread = new LimitedThread(
      { file, name: 'count', firstTask: [], limitMs, patienceMs: limitMs, idleMs },
      clock,
      onError,
    );
  }

  /** An estimate in any case: exact for the o200k tokenizer, from the bytes where the thread can't tell. */
  async count(texts: readonly string[]): Promise<number> {
    const spoken = texts.filter((text) => text !== '');
    try {
      return await this.#thread.run(spoken);
    } catch {
      return estimateTokens(spoken);
    }
  }

  close(): Promise<void> {
    return this.#thread.close();
  }
}

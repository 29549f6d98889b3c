import { join } from 'node:path';
import { holderOf } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import { sampleForTokens } from '../../shared/text/token-sample.js';
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

/** UTF-16 units of one task. The tokenizer takes 80 ms for them in Chinese, and an urgent count waits for one task. */
const maxTaskLength = 8192;

/** The texts in pieces of at most this length together. */
function* partsOf(texts: readonly string[]): Generator<readonly string[]> {
  let part: string[] = [];
  let length = 0;
  for (const text of texts) {
    for (let at = 0; at < text.length; at += maxTaskLength) {
      const piece = text.slice(at, at + maxTaskLength);
      if (length > 0 && length + piece.length > maxTaskLength) {
        yield part;
        part = [];
        length = 0;
      }
      part.push(piece);
      length += piece.length;
    }
  }
  if (length > 0) yield part;
}

/**
 * Counts tokens off the primary's loop. The holders of keys, users and addresses take turns, after the counts that a job
 * with a slot waits for.
 */
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

  /** Exact for the o200k tokenizer if the texts are short; estimated from the bytes if the thread fails or takes too long. */
  count(texts: readonly string[], client: string): Promise<number> {
    return this.#count(texts, client, false);
  }

  /** As `count`, for a job that has a slot. */
  countUrgently(texts: readonly string[], client: string): Promise<number> {
    return this.#count(texts, client, true);
  }

  async #count(texts: readonly string[], client: string, isUrgent: boolean): Promise<number> {
    const sample = sampleForTokens(texts.filter((text) => text !== ''));
    try {
      let counted = 0;
      for (const part of partsOf(sample.texts))
        counted += await this.#thread.run(part, { line: holderOf(client), isUrgent });
      return Math.round(counted * sample.factor);
    } catch {
      return estimateTokens(texts);
    }
  }

  close(): Promise<void> {
    return this.#thread.close();
  }
}

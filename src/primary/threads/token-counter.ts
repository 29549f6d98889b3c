import { join } from 'node:path';
import { type ClientText, holderOf } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import { sampleForTokens } from '../../shared/text/token-sample.js';
import { LimitedThread } from '../../shared/threads/limited-thread.js';

/** The thread ends without a task for this long, to free the ranks of the tokenizer, about 70 MB. */
const idleMs = 600_000;
/** Longest wait for a count: the figure is an estimate anyway. */
const limitMs = 3000;
/** English text has about four bytes per token. */
const bytesPerToken = 4;

/** Estimates the tokens of texts from their bytes. */
export function estimateTokens(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + Math.ceil(Buffer.byteLength(text) / bytesPerToken), 0);
}

/**
 * UTF-16 units per task. The tokenizer takes 80 ms for this much Chinese text, and an urgent count waits for at most
 * one task.
 */
const maxTaskLength = 8192;

/** Splits the texts into parts, each of at most `maxTaskLength` units in total. */
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
 * Counts tokens outside of the event loop of the primary. Key holders, users and addresses take turns, after the counts
 * for jobs with a slot.
 */
export class TokenCounter {
  readonly #thread: LimitedThread<readonly string[], number>;

  /** Calls `onError` if the thread could not start, or broke. */
  constructor(clock: Clock, onError: (error: unknown) => void, file = join(__dirname, 'token-thread.js')) {
    this.#thread = new LimitedThread(
      { file, name: 'count', firstTask: [], limitMs, patienceMs: limitMs, idleMs },
      clock,
      onError,
    );
  }

  /**
   * Counts tokens: exactly for the o200k tokenizer if the texts are short, from a sample if they are long, and
   * estimated from the bytes if the thread fails or takes too long.
   */
  countTokens(texts: readonly string[], client: ClientText): Promise<number> {
    return this.#count(texts, client, false);
  }

  /** Counts tokens for a job with a slot, see `count`. */
  countUrgently(texts: readonly string[], client: ClientText): Promise<number> {
    return this.#count(texts, client, true);
  }

  async #count(texts: readonly string[], client: ClientText, isUrgent: boolean): Promise<number> {
    const sample = sampleForTokens(texts.filter((text) => text !== ''));
    try {
      let counted = 0;
      for (const part of partsOf(sample.texts))
        counted += await this.#thread.runTask(part, { line: holderOf(client), isUrgent });
      return Math.round(counted * sample.factor);
    } catch {
      return estimateTokens(texts);
    }
  }

  closeThread(): Promise<void> {
    return this.#thread.closeThread();
  }
}

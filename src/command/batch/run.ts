import { setMaxListeners } from 'node:events';
import { orAborted, withResolvers } from '../../shared/async.js';
import type { Tally } from '../render/batch.js';
import type { Asker } from './asker.js';
import { type BadLine, isBad, type Prompt } from './prompts.js';
import type { PromptEnd } from './streams.js';

/** Where the lines of a batch go. */
export interface AnswerSink {
  /** Resolves once the whole line is written. Rejects with a CommandError. */
  write(record: object): Promise<void>;
  close(): Promise<void>;
}

export interface RunOptions {
  /** Prompts that are asked at once. */
  readonly concurrency: number;
  /** Whether lines are written in the order of the prompts. */
  readonly isOrdered: boolean;
  /** No new prompt is asked once so many have failed. */
  readonly maxFailures: number;
}

/** In the order of the prompts, so many answers for each that is asked at once may wait for the one before them. */
const heldForEach = 32;

/** Owns the prompts that are being asked, and how many have ended. */
export class BatchRun {
  readonly #asker: Pick<Asker, 'ask' | 'rerun' | 'heldBecause'>;
  readonly #sink: Pick<AnswerSink, 'write'>;
  readonly #options: RunOptions;
  readonly #held = new Map<number, object>();
  #answered = 0;
  #failed = 0;
  /** Numbers of prompts: how many were taken, and the first that is not written yet. */
  #taken = 0;
  #next = 0;
  #moved = withResolvers();

  constructor(
    asker: Pick<Asker, 'ask' | 'rerun' | 'heldBecause'>,
    sink: Pick<AnswerSink, 'write'>,
    options: RunOptions,
  ) {
    this.#asker = asker;
    this.#sink = sink;
    this.#options = options;
  }

  get tally(): Tally {
    const { rerun, heldBecause } = this.#asker;
    return { answered: this.#answered, failed: this.#failed, rerun, heldBecause };
  }

  /** Whether so many prompts have failed that no other is asked. */
  get hasGivenUp(): boolean {
    return this.#failed >= this.#options.maxFailures;
  }

  /**
   * Asks them all. Once `stopping` aborts, it takes no other and waits for those that are asked. Rejects with the reason of
   * `cutting`, and with a CommandError that concerns all of them; then nothing is asked any more.
   */
  async run(prompts: AsyncGenerator<Prompt | BadLine>, stopping: AbortSignal, cutting: AbortSignal): Promise<void> {
    const ending = new AbortController();
    const signal = AbortSignal.any([ending.signal, cutting]);
    setMaxListeners(0, signal); // each request listens
    const lanes = Array.from({ length: this.#options.concurrency }, () =>
      this.#lane(prompts, stopping, signal).catch((error) => {
        ending.abort(error);
        throw error;
      }),
    );
    const ends = await Promise.allSettled(lanes);
    cutting.throwIfAborted();
    for (const end of ends) if (end.status === 'rejected') throw ending.signal.reason;
  }

  async #lane(prompts: AsyncGenerator<Prompt | BadLine>, stopping: AbortSignal, signal: AbortSignal): Promise<void> {
    while (!stopping.aborted && !this.hasGivenUp) {
      const { done, value: prompt } = await prompts.next();
      if (done === true) return;
      const number = this.#taken++;
      while (this.#isFarAhead(number)) await orAborted(this.#moved.promise, signal);
      if (stopping.aborted || this.hasGivenUp) return;
      const ending = await this.#endingOf(prompt, signal);
      await this.#place(number, { id: prompt.id, line: prompt.line, ...ending });
    }
  }

  async #endingOf(prompt: Prompt | BadLine, signal: AbortSignal): Promise<PromptEnd> {
    signal.throwIfAborted();
    if (!isBad(prompt)) return this.#asker.ask(prompt, signal);
    return { error: { code: 'validation_error', message: prompt.fault } };
  }

  #isFarAhead(number: number): boolean {
    return this.#options.isOrdered && number - this.#next >= this.#options.concurrency * heldForEach;
  }

  async #place(number: number, record: object): Promise<void> {
    if (!this.#options.isOrdered) return this.#write(record);
    this.#held.set(number, record);
    for (let next = this.#held.get(this.#next); next !== undefined; next = this.#held.get(this.#next)) {
      this.#held.delete(this.#next++);
      await this.#write(next);
    }
    this.#moved.resolve();
    this.#moved = withResolvers();
  }

  async #write(record: object): Promise<void> {
    await this.#sink.write(record);
    if ('error' in record) this.#failed++;
    else this.#answered++;
  }
}

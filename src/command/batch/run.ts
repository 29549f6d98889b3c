import { setMaxListeners } from 'node:events';
import { orAborted, withResolvers } from '../../shared/async.js';
import type { Tally } from '../render/batch.js';
import type { Asker } from './asker.js';
import { type BadLine, isBad, type Prompt } from './prompts.js';
import type { PromptEnd } from './streams.js';

export interface AnswerSink {
  /** Resolves when the whole line is written. Rejects with a CommandError. */
  write(record: object): Promise<void>;
  close(): Promise<void>;
}

export interface RunOptions {
  /** Maximum number of prompts with an open request. */
  readonly concurrency: number;
  /** Whether lines are written in the order of the prompts. */
  readonly isOrdered: boolean;
  /** Number of failed prompts after which no new one is sent. */
  readonly maxFailures: number;
}

/** Limit of answers, per concurrent request, that wait in memory for an earlier one if the output is ordered. */
const heldForEach = 32;

/** Owns the prompts with an open request, and counts the ended ones. */
export class BatchRun {
  readonly #asker: Pick<Asker, 'ask' | 'rerun' | 'heldBecause'>;
  readonly #sink: Pick<AnswerSink, 'write'>;
  readonly #options: RunOptions;
  readonly #heldPrompts = new Map<number, object>();
  #answered = 0;
  #failed = 0;
  /** `#taken`: number of prompts read so far. `#next`: if ordered, index of the prompt whose record is written next. */
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

  /** Whether so many prompts have failed that no other is sent. */
  get hasGivenUp(): boolean {
    return this.#failed >= this.#options.maxFailures;
  }

  /**
   * Sends all prompts. When `stopping` aborts, sends no further prompt and waits for the open requests. Rejects with
   * the reason of `cutting`, or with a CommandError that concerns all prompts; either one cancels the open requests.
   */
  async run(prompts: AsyncGenerator<Prompt | BadLine>, stopping: AbortSignal, cutting: AbortSignal): Promise<void> {
    const ending = new AbortController();
    const signal = AbortSignal.any([ending.signal, cutting]);
    setMaxListeners(0, signal); // each request adds a listener
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
    this.#heldPrompts.set(number, record);
    for (let next = this.#heldPrompts.get(this.#next); next !== undefined; next = this.#heldPrompts.get(this.#next)) {
      this.#heldPrompts.delete(this.#next++);
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

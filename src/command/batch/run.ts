import type { Tally } from '../render/batch.js';
import type { PromptEnd } from './ends.js';
import type { BadLine, Prompt } from './prompts.js';

export interface AnswerSink {
  /** Resolves when the whole line is written. Rejects with a CommandError. */
  writeRecord(record: object): Promise<void>;
  /** Resolves when no power failure can lose the lines. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

export interface Sending {
  readonly prompts: AsyncGenerator<Prompt | BadLine>;
  /** Called once for each prompt that has ended, in any order. */
  readonly place: (prompt: Prompt | BadLine, end: PromptEnd) => Promise<void>;
  /** Aborts if no further prompt may be sent. */
  readonly stopping: AbortSignal;
  /** Aborts if the sending must end at once. */
  readonly cutting: AbortSignal;
}

/** Way of sending prompts to the service. */
export interface Sender {
  /** Number of answers that the service has, but that have not been placed yet. */
  readonly ready: number;
  /** Reason why nothing is sent at the moment; null while prompts are sent. */
  readonly heldBecause: string | null;
  /**
   * Resolves when all prompts have ended, or after `stopping`. Rejects with the reason of `cutting`, or with a
   * CommandError that concerns all prompts.
   */
  sendPrompts(sending: Sending): Promise<void>;
}

export interface RunOptions {
  /** Whether lines are written in the order of the prompts. */
  readonly isOrdered: boolean;
  /** Number of failed prompts after which no new one is sent. */
  readonly maxFailures: number;
}

/** Writes the ends of the prompts that a sender sends, and counts them. */
export class BatchRun {
  readonly #sender: Sender;
  readonly #sink: Pick<AnswerSink, 'writeRecord'>;
  readonly #options: RunOptions;
  readonly #givingUp = new AbortController();
  /** For an ordered output: numbers of the lines that are not written yet, in their order, and records that wait. */
  readonly #order = new Set<number>();
  readonly #waiting = new Map<number, object>();
  #answered = 0;
  #failed = 0;

  constructor(sender: Sender, sink: Pick<AnswerSink, 'writeRecord'>, options: RunOptions) {
    this.#sender = sender;
    this.#sink = sink;
    this.#options = options;
  }

  get tally(): Tally {
    const { ready, heldBecause } = this.#sender;
    return { answered: this.#answered, failed: this.#failed, ready, heldBecause };
  }

  /** Whether so many prompts have failed that no other is sent. */
  get hasGivenUp(): boolean {
    return this.#givingUp.signal.aborted;
  }

  /** Sends all prompts; see `Sender`. Answers that wait for an earlier one are written at the end at the latest. */
  async runPrompts(
    prompts: AsyncGenerator<Prompt | BadLine>,
    stopping: AbortSignal,
    cutting: AbortSignal,
  ): Promise<void> {
    try {
      await this.#sender.sendPrompts({
        prompts: this.#options.isOrdered ? this.#recordOrder(prompts) : prompts,
        place: ({ id, line }, end) => this.#place(line, { id, line, ...end }),
        stopping: AbortSignal.any([stopping, this.#givingUp.signal]),
        cutting,
      });
    } finally {
      const records = [...this.#waiting].toSorted(([one], [other]) => one - other);
      for (const [, record] of records) await this.#write(record);
    }
  }

  async *#recordOrder(prompts: AsyncGenerator<Prompt | BadLine>): AsyncGenerator<Prompt | BadLine> {
    for await (const prompt of prompts) {
      this.#order.add(prompt.line);
      yield prompt;
    }
  }

  async #place(line: number, record: object): Promise<void> {
    if (!this.#options.isOrdered) return this.#write(record);
    this.#waiting.set(line, record);
    for (const next of this.#order) {
      const ready = this.#waiting.get(next);
      if (ready === undefined) return;
      this.#order.delete(next);
      this.#waiting.delete(next);
      await this.#write(ready);
    }
  }

  async #write(record: object): Promise<void> {
    await this.#sink.writeRecord(record);
    if ('error' in record) this.#failed++;
    else this.#answered++;
    if (this.#failed >= this.#options.maxFailures) this.#givingUp.abort();
  }
}

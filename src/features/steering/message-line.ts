import { orAborted, withResolvers } from '../../shared/async.js';
import { isCancelled, RelayError } from '../../shared/errors.js';
import type { Fate, SteerOrder } from './shared.js';

/** The job whose answer gets the messages. */
export interface SteeredJob {
  readonly signal: AbortSignal;
  interrupt(): boolean;
  addMessage(text: string): Promise<boolean>;
}

/** Messages to one answer, in the order of their arrival. */
export class MessageLine {
  readonly #job: SteeredJob;
  /** Number of messages whose fate is open. */
  #count = 0;
  /** Resolves when no message so far has an open fate. */
  #settled: Promise<unknown> = Promise.resolve();
  /** Whether a message has become the next turn: the later ones must come after it. */
  #hasNext = false;
  /** Messages with an Idempotency-Key. A worker that ends may leave one here, and its client then sends it again. */
  readonly #sent = new Map<string, Promise<boolean>>();

  constructor(job: SteeredJob) {
    this.#job = job;
  }

  /**
   * Yields the fate of a message once: when the answer has it, or when the message may become the next turn. The later
   * messages wait until the signal aborts. Rejects with `turn_ended` if the job was cancelled.
   */
  async *hold(message: SteerOrder, signal: AbortSignal): AsyncGenerator<Fate> {
    const earlier = this.#settled;
    const [isAlone, own] = [this.#count++ === 0, withResolvers()];
    this.#settled = Promise.all([earlier, own.promise]);
    try {
      // Messages that wait for the end of the answer must become turns before this one.
      const isInterrupted = message.interrupt && !isAlone && this.#job.interrupt();
      const isAdded = await orAborted(this.#add(message), signal);
      if (!isAdded) await orAborted(earlier, signal);
      if (!isAdded && message.text !== null) this.#goOn();
      yield { isAdded, isInterrupted };
      await orAborted(withResolvers<never>().promise, signal).catch(() => {});
    } finally {
      this.#count--;
      own.resolve();
    }
  }

  async #add({ text, interrupt, key }: SteerOrder): Promise<boolean> {
    if (text === null || interrupt || this.#hasNext) return false;
    if (key === null) return this.#job.addMessage(text);
    const name = JSON.stringify([key, text]);
    const sent = this.#sent.get(name) ?? this.#job.addMessage(text);
    this.#sent.set(name, sent);
    const isAdded = await sent;
    // Only messages that the answer has are kept: their number and length are limited.
    if (!isAdded) this.#sent.delete(name);
    return isAdded;
  }

  #goOn(): void {
    const { signal } = this.#job;
    if (signal.aborted && isCancelled(signal.reason))
      throw new RelayError('turn_ended', 'the answer was cancelled before the model had the message');
    this.#hasNext = true;
  }
}

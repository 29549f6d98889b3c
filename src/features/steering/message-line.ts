import { orAborted, withResolvers } from '../../shared/async.js';
import { isCancelled, RelayError } from '../../shared/errors.js';
import type { Fate, SteerOrder } from './shared.js';

/** Messages that may wait at one answer, each with its request. */
export const maxWaiting = 20;

/** The job whose answer gets the messages. */
export interface SteeredJob {
  readonly signal: AbortSignal;
  interrupt(): boolean;
  addMessage(text: string): Promise<boolean>;
}

/** Messages to one answer, in the order of their arrival. */
export class MessageLine {
  readonly #job: SteeredJob;
  /** Messages whose fate is open, with their sizes in bytes; 0 if a request only ends the answer. */
  readonly #open = new Map<SteerOrder, number>();
  readonly #checkRoom: (sizes: readonly number[]) => void;
  /** Resolves when no message so far has an open fate. */
  #settled: Promise<unknown> = Promise.resolve();
  /** Whether a message has become the next turn: the later ones must come after it. */
  #hasNext = false;
  /** Messages with an Idempotency-Key. A worker that ends may leave one here, and its client then sends it again. */
  readonly #sent = new Map<string, Promise<boolean>>();

  /** `checkRoom`: throws if messages of these sizes cannot all become turns. */
  constructor(job: SteeredJob, checkRoom: (sizes: readonly number[]) => void) {
    this.#job = job;
    this.#checkRoom = checkRoom;
  }

  /**
   * Yields the fate of a message once: when the answer has it, or when the message may become the next turn. The later
   * messages wait until the signal aborts. Rejects with `turn_ended` if the job was cancelled, and with
   * `concurrency_limited` if too many messages wait, or if the answer must end for messages that cannot become turns.
   * `onReached`: called when the answer has the message, also after the signal has aborted.
   */
  async *hold(message: SteerOrder, signal: AbortSignal, onReached: () => void = () => {}): AsyncGenerator<Fate> {
    const earlier = this.#settled;
    if (this.#open.size >= maxWaiting)
      throw new RelayError('concurrency_limited', `${maxWaiting} messages to this answer wait already`);
    const [isAlone, own] = [this.#open.size === 0, withResolvers()];
    this.#open.set(message, Buffer.byteLength(message.text ?? ''));
    this.#settled = Promise.all([earlier, own.promise]);
    try {
      // Messages that wait for the end of the answer must become turns before this one.
      const isInterrupted = message.interrupt && !isAlone && this.#interrupt();
      // The model may get the message after its worker has left.
      const added = this.#add(message).then((isAdded) => {
        if (isAdded) onReached();
        return isAdded;
      });
      const isAdded = await orAborted(added, signal);
      if (!isAdded) await orAborted(earlier, signal);
      if (!isAdded && message.text !== null) this.#goOn();
      yield { isAdded, isInterrupted };
      await orAborted(withResolvers<never>().promise, signal).catch(() => {});
    } finally {
      this.#open.delete(message);
      own.resolve();
    }
  }

  /** Ends the answer if all messages that wait for it can become turns. */
  #interrupt(): boolean {
    this.#checkRoom([...this.#open.values()].filter((bytes) => bytes > 0));
    return this.#job.interrupt();
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

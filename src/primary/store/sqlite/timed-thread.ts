import { withResolvers } from '../../../shared/async/promises.js';
import type { Clock } from '../../../shared/clock.js';
import { OutcomeUnknown } from './gone.js';
import type { SqliteOrder, SqliteValue } from './messages.js';
import type { SqliteThread } from './sqlite-thread.js';

/** A disk that takes longer hangs: nobody is kept waiting for it. */
const limitMs = 10_000;
/** For what goes through the whole file. */
const longLimitMs = 600_000;

export type StoreThread = Pick<SqliteThread, 'ask' | 'close'>;

/** What makes the file agree again with what a caller was told, who was told that nothing was done. */
export interface Settlement {
  /** Does no harm where nothing was done in the first place. */
  readonly order: SqliteOrder;
  /** Called once it is done. */
  readonly settled?: () => void;
}

/**
 * Owns how long anybody waits for the thread, and what is to be settled because nobody knows whether it was done. Until
 * that is settled nothing else is asked of the thread, so that no later change builds on one that will be undone.
 */
export class TimedThread {
  readonly #thread: StoreThread;
  readonly #clock: Clock;
  #toSettle: readonly Settlement[] = [];
  /** Orders under way that go through the whole file: others wait behind them, and the disk is not to blame. */
  #long = 0;

  constructor(thread: StoreThread, clock: Clock) {
    this.#thread = thread;
    this.#clock = clock;
  }

  get isSettled(): boolean {
    return this.#toSettle.length === 0;
  }

  /** Rejects with `OutcomeUnknown` after the limit; `settlement` is kept then, for `settle`. */
  async ask(order: SqliteOrder, settlement: Settlement | null = null): Promise<SqliteValue> {
    if (!this.isSettled) throw new Error('it is not known yet what the disk has done of what it was asked before');
    try {
      return await this.#inTime(order);
    } catch (error) {
      if (error instanceof OutcomeUnknown && settlement !== null) this.#toSettle = [...this.#toSettle, settlement];
      throw error;
    }
  }

  /** With a limit for what goes through the whole file. What waits behind it has the same. */
  async askLong(order: SqliteOrder): Promise<SqliteValue> {
    this.#long++;
    try {
      return await this.#inTime(order);
    } finally {
      this.#long--;
    }
  }

  /** Resolves once there is nothing left to settle. Rejects where the file takes nothing; what is left stays then. */
  async settle(): Promise<void> {
    for (let [next] = this.#toSettle; next !== undefined; [next] = this.#toSettle) {
      await this.#thread.ask(next.order);
      this.#toSettle = this.#toSettle.slice(1);
      next.settled?.();
    }
  }

  close(): Promise<void> {
    return this.#thread.close();
  }

  async #inTime(order: SqliteOrder): Promise<SqliteValue> {
    const { promise: tooLong, reject } = withResolvers<never>();
    const begunMs = this.#clock.monotonicMs();
    const look = () => {
      const waitedMs = this.#clock.monotonicMs() - begunMs;
      if (this.#long > 0 && waitedMs < longLimitMs) stop = this.#clock.after(limitMs, look);
      else reject(new OutcomeUnknown(`the disk has not answered for ${Math.round(waitedMs / 1000)} s`));
    };
    let stop = this.#clock.after(limitMs, look);
    try {
      return await Promise.race([this.#thread.ask(order), tooLong]);
    } finally {
      stop();
    }
  }
}

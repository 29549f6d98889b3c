import { withResolvers } from '../../../shared/async/promises.js';
import type { Clock, StopTimer } from '../../../shared/clock.js';
import { RelayError, storeUnavailable } from '../../../shared/errors.js';
import { StoreFault, type StoreObserver, type StoreOperation, silentObserver } from '../contract/store.js';
import type { SqliteOrder, SqliteValue } from './messages.js';
import { NoSuchConversation } from './sqlite-thread.js';
import { type Settlement, type StoreThread, TimedThread } from './timed-thread.js';

/** While it takes nothing, it is asked again at this pace. */
const probeMs = 1000;
/** Room for a usual turn: else the store would be back with each small thing, and down with the next turn. */
const probeBytes = 64 * 1024;
/** What was removed is gone from the files as well after this time. */
const tidyMs = 1000;
/** A disk that does not answer does not keep the service from its end. */
const closeLimitMs = 5000;

/** Owns whether the file takes what it is asked to keep. */
export class SqliteAccess {
  readonly clock: Clock;
  readonly #thread: TimedThread;
  #observer = silentObserver;
  #state: 'up' | 'down' | 'closed' = 'up';
  #onBack: () => void = () => {};
  #stopProbe: StopTimer = () => {};
  #stopTidy: StopTimer | null = null;

  constructor(thread: StoreThread, clock: Clock) {
    this.#thread = new TimedThread(thread, clock);
    this.clock = clock;
  }

  get isUp(): boolean {
    return this.#state === 'up';
  }

  observe(observer: StoreObserver): void {
    this.#observer = observer;
  }

  /** `listener` is called when it takes again what it is asked to keep. There is one. */
  onBack(listener: () => void): void {
    this.#onBack = listener;
  }

  /**
   * Rejects with `not_found` for what is gone, else with `store_unavailable`. Where it is not known then whether it was
   * done, it is settled before anything else is asked.
   */
  async ask(operation: StoreOperation, order: SqliteOrder, settlement: Settlement | null = null): Promise<SqliteValue> {
    const begunMs = this.clock.monotonicMs();
    try {
      return await this.#thread.ask(order, settlement);
    } catch (error) {
      if (error instanceof NoSuchConversation) throw new RelayError('not_found', 'no such conversation');
      this.fails(messageOf(error));
      throw storeUnavailable();
    } finally {
      this.#observer.done(operation, this.clock.monotonicMs() - begunMs);
    }
  }

  /** What goes through the whole file. Where it fails, it says nothing about the store: a disk may have room for a turn alone. */
  async askAside(order: SqliteOrder): Promise<SqliteValue> {
    const begunMs = this.clock.monotonicMs();
    try {
      return await this.#thread.askLong(order);
    } catch (error) {
      throw new RelayError('store_unavailable', `the store cannot do this now: ${messageOf(error)}`, {
        retryAfterSeconds: storeUnavailable().retryAfterSeconds,
      });
    } finally {
      this.#observer.done('upkeep', this.clock.monotonicMs() - begunMs);
    }
  }

  /** Rejects with a StoreFault: without what it has kept the service does not start. */
  async read(order: SqliteOrder): Promise<SqliteValue> {
    const begunMs = this.clock.monotonicMs();
    try {
      return await this.#thread.askLong(order);
    } catch (error) {
      throw new StoreFault(`what was kept cannot be read: ${messageOf(error)}`);
    } finally {
      this.#observer.done('restore', this.clock.monotonicMs() - begunMs);
    }
  }

  /** Resolves when what was removed is gone from the files as well. */
  async tidyAll(): Promise<void> {
    while ((await this.askAside({ type: 'tidy' })) === true);
  }

  /** To be called when something was removed. */
  tidySoon(): void {
    if (this.#state !== 'closed') this.#stopTidy ??= this.clock.after(tidyMs, () => void this.#tidy());
  }

  /** Something has shown that it does not keep what it should. */
  fails(reason: string): void {
    if (this.#state !== 'up') return;
    this.#state = 'down';
    this.#probeSoon();
    this.#observer.down(reason);
  }

  /** Resolves with false where the disk hangs: the thread goes on then, and nothing but SIGKILL ends it. */
  async close(): Promise<boolean> {
    this.#state = 'closed';
    this.#stopProbe();
    this.#stopTidy?.();
    this.#thread.settle().catch(() => {});
    const { promise: tooLong, resolve } = withResolvers<false>();
    const stopTimer = this.clock.after(closeLimitMs, () => resolve(false));
    const isClosed = await Promise.race([this.#thread.close().then(() => true), tooLong]);
    stopTimer();
    return isClosed;
  }

  #works(): void {
    if (this.#state !== 'down' || !this.#thread.isSettled) return;
    this.#state = 'up';
    this.#stopProbe();
    this.#observer.back();
    this.#onBack();
  }

  #probeSoon(): void {
    this.#stopProbe = this.clock.after(probeMs, () => void this.#probe());
  }

  /** One at a time: a disk that hangs answers none of them. */
  async #probe(): Promise<void> {
    try {
      await this.#thread.settle();
      for (const bytes of [probeBytes, 0]) await this.#thread.ask({ type: 'probe', bytes });
      this.#works();
    } catch {
      if (this.#state === 'down') this.#probeSoon();
    }
  }

  async #tidy(): Promise<void> {
    const begunMs = this.clock.monotonicMs();
    // A disk may have room for a turn and none for this, so it says nothing about the store.
    const isMore = await this.#thread.ask({ type: 'tidy' }).catch(() => true);
    this.#observer.done('tidy', this.clock.monotonicMs() - begunMs);
    this.#stopTidy = null;
    if (isMore === true) this.tidySoon();
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

import { withResolvers } from '../../../shared/async.js';
import type { Clock, StopTimer } from '../../../shared/clock.js';
import { RelayError, storeUnavailable } from '../../../shared/errors.js';
import {
  PassingFault,
  StoreFault,
  type StoreObserver,
  type StoreOperation,
  silentObserver,
} from '../contract/store.js';
import { call, NoSuchConversation, type TableCall } from './calls.js';
import { OutcomeUnknown, type SqliteThread } from './sqlite-thread.js';

/** A disk that takes longer hangs: no caller waits for it. */
const limitMs = 10_000;
/** For a call that goes through the whole file. */
const longLimitMs = 600_000;
/** How often the file is probed while writes fail. */
const probeMs = 1000;
/** Room for a usual turn: else each small write would bring the store back, and the next turn take it down. */
const probeBytes = 64 * 1024;
/** Removed text is gone from the files too after this time. */
const tidyMs = 1000;
/** As SQLite and `OutcomeUnknown` say it. */
const ofDisk = /^(disk I\/O error|the disk has not answered)/;
/** The service ends after this time, even if the disk does not answer. */
const closeLimitMs = 5000;

export type StoreThread = Pick<SqliteThread, 'ask' | 'close'>;

/** What undoes or completes a write with an unknown outcome, after its caller got an error. */
export interface Settlement {
  /** Does no harm if the write was not done. */
  readonly call: TableCall;
  /** Called once it is done. */
  readonly settled?: () => void;
}

/**
 * Owns whether the file takes writes, and which writes have an unknown outcome. Nothing else is written until those are
 * settled: else a later change would build on one that will be undone.
 */
export class SqliteClient {
  readonly clock: Clock;
  readonly #thread: StoreThread;
  readonly #onBack: () => void;
  #observer = silentObserver;
  #state: 'up' | 'down' | 'closed' = 'up';
  /** Why it went down. */
  #trouble = '';
  /** What is still to be done before the file can be used: to open it, then to read it. */
  #steps: readonly (() => Promise<void>)[] = [];
  #toSettle: readonly Settlement[] = [];
  /** Calls under way that go through the whole file: other calls wait behind them, and the disk is not to blame. */
  #long = 0;
  #stopProbe: StopTimer = () => {};
  #stopTidy: StopTimer | null = null;

  /** Calls `onBack` when the file takes writes again. */
  constructor(thread: StoreThread, clock: Clock, onBack: () => void = () => {}) {
    this.#thread = thread;
    this.clock = clock;
    this.#onBack = onBack;
  }

  get isUp(): boolean {
    return this.#state === 'up';
  }

  observe(observer: StoreObserver): void {
    this.#observer = observer;
    if (this.#state === 'down') observer.down(this.#trouble);
  }

  /**
   * Takes a step of the start. If that fails with a PassingFault, or takes longer, the file is down, and the step is repeated
   * until it succeeds; further steps follow it. Rejects with any other error.
   */
  async begin(step: () => Promise<void>, limitMs: number | null = null): Promise<void> {
    const once = shared(step);
    this.#steps = [...this.#steps, once];
    if (this.#steps.length > 1) return;
    const { promise: tooLong, reject } = withResolvers<never>();
    const giveUp = (ms: number) => () => reject(new PassingFault(`the disk has not answered for ${ms / 1000} s`));
    const stopTimer = limitMs === null ? () => {} : this.clock.after(limitMs, giveUp(limitMs));
    try {
      await Promise.race([once(), tooLong]);
      this.#steps = [];
    } catch (error) {
      if (!(error instanceof PassingFault)) throw error;
      this.fails(error.message);
    } finally {
      stopTimer();
    }
  }

  /** Rejects with `not_found` for a conversation that is gone, else with `store_unavailable`. */
  ask<R>(operation: StoreOperation, call: TableCall<R>, settlement: Settlement | null = null): Promise<R> {
    return this.#measured(operation, async () => {
      if (this.#isUnread) throw storeUnavailable();
      try {
        return await this.#askSettled(call);
      } catch (error) {
        if (error instanceof OutcomeUnknown && settlement !== null) this.#toSettle = [...this.#toSettle, settlement];
        if (error instanceof NoSuchConversation) throw new RelayError('not_found', 'no such conversation');
        this.fails(messageOf(error));
        throw storeUnavailable();
      }
    });
  }

  /** For a call that goes through the whole file. A failure does not take the store down: a turn may still have room. */
  askAside<R>(call: TableCall<R>): Promise<R> {
    const faultOf = (reason: string) => {
      const { retryAfterSeconds } = storeUnavailable();
      return new RelayError('store_unavailable', `the store cannot do this now: ${reason}`, { retryAfterSeconds });
    };
    if (this.#isUnread) return Promise.reject(faultOf(this.#trouble));
    return this.#askLong('upkeep', call, faultOf);
  }

  /** For steps of the start. Rejects with a StoreFault. */
  read<R>(call: TableCall<R>): Promise<R> {
    return this.#askLong('restore', call, (reason) => {
      const Fault = ofDisk.test(reason) ? PassingFault : StoreFault;
      return new Fault(`the stored data cannot be read: ${reason}`);
    });
  }

  /** Resolves when removed text is gone from the files too. */
  async tidyAll(): Promise<void> {
    while (await this.askAside(call('file', 'tidy')));
  }

  /** To be called after a removal. */
  tidySoon(): void {
    if (this.#state !== 'closed') this.#stopTidy ??= this.clock.after(tidyMs, () => void this.#tidy());
  }

  /** The file lacks what it should have, or cannot be written. */
  fails(reason: string): void {
    if (this.#state !== 'up') return;
    this.#state = 'down';
    this.#trouble = reason;
    this.#probeSoon();
    this.#observer.down(reason);
  }

  /** Resolves with false if the disk hangs: only SIGKILL ends the thread then. */
  async close(): Promise<boolean> {
    this.#state = 'closed';
    this.#stopProbe();
    this.#stopTidy?.();
    this.#settle().catch(() => {});
    const { promise: tooLong, resolve } = withResolvers<false>();
    const stopTimer = this.clock.after(closeLimitMs, () => resolve(false));
    const isClosed = await Promise.race([this.#thread.close().then(() => true), tooLong]);
    stopTimer();
    return isClosed;
  }

  /** It is down, and was not read yet: no call could do its work. */
  get #isUnread(): boolean {
    return this.#state === 'down' && this.#steps.length > 0;
  }

  async #askSettled<R>(call: TableCall<R>): Promise<R> {
    if (this.#toSettle.length === 0) return this.#askInTime(call);
    throw new Error('it is not known yet what the disk has done of what it was asked before');
  }

  #askLong<R>(operation: StoreOperation, call: TableCall<R>, faultOf: (reason: string) => Error): Promise<R> {
    return this.#measured(operation, async () => {
      this.#long++;
      try {
        return await this.#askInTime(call);
      } catch (error) {
        throw faultOf(messageOf(error));
      } finally {
        this.#long--;
      }
    });
  }

  /** Rejects with `OutcomeUnknown` after the limit. All calls have the long limit while one goes through the whole file. */
  async #askInTime<R>(call: TableCall<R>): Promise<R> {
    const { promise: tooLong, reject } = withResolvers<never>();
    const begunMs = this.clock.monotonicMs();
    const check = () => {
      const waitedMs = this.clock.monotonicMs() - begunMs;
      if (this.#long > 0 && waitedMs < longLimitMs) stop = this.clock.after(limitMs, check);
      else reject(new OutcomeUnknown(`the disk has not answered for ${Math.round(waitedMs / 1000)} s`));
    };
    let stop = this.clock.after(limitMs, check);
    try {
      return await Promise.race([this.#thread.ask(call), tooLong]);
    } finally {
      stop();
    }
  }

  async #measured<R>(operation: StoreOperation, work: () => Promise<R>): Promise<R> {
    const begunMs = this.clock.monotonicMs();
    try {
      return await work();
    } finally {
      this.#observer.done(operation, this.clock.monotonicMs() - begunMs);
    }
  }

  /** Resolves when nothing is left to settle. Rejects if the file takes nothing; the rest stays for the next time. */
  async #settle(): Promise<void> {
    for (let [next] = this.#toSettle; next !== undefined; [next] = this.#toSettle) {
      await this.#thread.ask(next.call);
      this.#toSettle = this.#toSettle.slice(1);
      next.settled?.();
    }
  }

  #probeSoon(): void {
    this.#stopProbe = this.clock.after(probeMs, () => void this.#probe());
  }

  /** One at a time: a disk that hangs answers none of them. */
  async #probe(): Promise<void> {
    try {
      await this.#takeSteps();
      await this.#settle();
      for (const bytes of [probeBytes, 0]) await this.#askSettled(call('file', 'probe', bytes));
      this.#works();
    } catch (error) {
      if (this.#isUnread) this.#reportAgain(messageOf(error));
      if (this.#state === 'down') this.#probeSoon();
    }
  }

  async #takeSteps(): Promise<void> {
    for (let [step] = this.#steps; step !== undefined && this.#state === 'down'; [step] = this.#steps) {
      await step();
      this.#steps = this.#steps.slice(1);
    }
  }

  /** At the start one cause may follow another: the disk comes, and the file is in use. */
  #reportAgain(reason: string): void {
    if (reason === this.#trouble) return;
    this.#trouble = reason;
    this.#observer.down(reason);
  }

  #works(): void {
    if (this.#state !== 'down' || this.#toSettle.length > 0) return;
    this.#state = 'up';
    this.#stopProbe();
    this.#observer.back();
    this.#onBack();
  }

  async #tidy(): Promise<void> {
    // A failure does not take the store down: a turn may still have room.
    const hasMore = await this.#measured('tidy', () => this.#askSettled(call('file', 'tidy')).catch(() => true));
    this.#stopTidy = null;
    if (hasMore) this.tidySoon();
  }
}

/** All who call it while it is under way share one call. */
function shared(action: () => Promise<void>): () => Promise<void> {
  let underWay: Promise<void> | null = null;
  return () => {
    underWay ??= action().finally(() => {
      underWay = null;
    });
    return underWay;
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

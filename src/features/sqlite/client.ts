import {
  PassingFault,
  StoreFault,
  type StoreObserver,
  type StoreOperation,
  silentObserver,
} from '../../primary/store/contract/store.js';
import { withLimit, withResolvers } from '../../shared/async.js';
import type { Clock, StopTimer } from '../../shared/clock.js';
import { RelayError, storeUnavailable } from '../../shared/errors.js';
import { call, NoSuchConversation, type TableCall } from './calls.js';
import { OutcomeUnknown, type SqliteThread } from './sqlite-thread.js';

/** A disk that takes longer counts as hanging, and the call is rejected. */
const limitMs = 10_000;
/** Limit for a call that reads the whole file. */
const longLimitMs = 600_000;
/** Interval of the probes while writes fail. */
const probeMs = 1000;
/**
 * Bytes that a probe writes: room for a typical turn. With a smaller probe, the store would come up and fail again at
 * the next turn.
 */
const probeBytes = 64 * 1024;
/** Interval at which failures of single calls are reported. */
const betweenWarningsMs = 60_000;
/** Delay until removed text is erased from the files too. */
const tidyMs = 1000;
/** Error messages of SQLite and of `OutcomeUnknown` that report a disk problem. */
const diskFailure = /^(disk I\/O error|the disk has not answered)/;
/** Limit for closing. The service exits after it, even if the disk does not answer. */
const closeLimitMs = 5000;

export type StoreThread = Pick<SqliteThread, 'ask' | 'closeThread'>;

/** A call that undoes or completes a write with an unknown outcome, after the caller got an error. */
export interface Settlement {
  /** The call, without effect if the write was not done. */
  readonly call: TableCall;
  /** Called when the call is done. */
  readonly settled?: () => void;
}

/**
 * Owns the state of the file (up or down) and the writes with an unknown outcome. Until those are settled, nothing else
 * is written: a later change could build on one that is undone.
 */
export class SqliteClient {
  readonly clock: Clock;
  readonly #thread: StoreThread;
  readonly #onBack: () => void;
  #observer = silentObserver;
  #state: 'up' | 'down' | 'closed' = 'up';
  /** Reason why the store went down. */
  #trouble = '';
  /** Start steps that are not done yet: open the file, then read it. */
  #steps: readonly (() => Promise<void>)[] = [];
  #toSettle: readonly Settlement[] = [];
  /** Number of running calls that read the whole file. Other calls queue behind them without a fault of the disk. */
  #long = 0;
  #stopProbe: StopTimer = () => {};
  #stopTidy: StopTimer | null = null;
  /** Writes a probe. Failed calls share it. */
  readonly #probeNow = shared(async () => {
    for (const bytes of [probeBytes, 0]) await this.#askSettled(call('file', 'probe', bytes));
  });
  /** Time of the last warning of a failed call, monotonic. */
  #warnedMs = Number.NEGATIVE_INFINITY;

  /** Calls `onBack` when the file is writable again after a failure. */
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
   * Runs a start step. If it fails with a PassingFault or exceeds its limit, the file is down, and the step is repeated
   * until it succeeds; later steps follow it. Rejects with any other error.
   */
  async runStartStep(step: () => Promise<void>, limitMs: number | null = null): Promise<void> {
    const once = shared(step);
    this.#steps = [...this.#steps, once];
    if (this.#steps.length > 1) return;
    const giveUp = (ms: number) => () => {
      throw new PassingFault(`the disk has not answered for ${ms / 1000} s`);
    };
    try {
      await (limitMs === null ? once() : withLimit(once(), limitMs, this.clock, giveUp(limitMs)));
      this.#steps = [];
    } catch (error) {
      if (!(error instanceof PassingFault)) throw error;
      this.fails(error.message);
    }
  }

  /**
   * Calls a table method. Rejects with `not_found` if the conversation does not exist, otherwise with
   * `store_unavailable`.
   */
  ask<R>(operation: StoreOperation, call: TableCall<R>, settlement: Settlement | null = null): Promise<R> {
    return this.#measured(operation, async () => {
      if (this.#isUnread) throw storeUnavailable();
      try {
        return await this.#askSettled(call);
      } catch (error) {
        if (error instanceof OutcomeUnknown && settlement !== null) this.#toSettle = [...this.#toSettle, settlement];
        if (error instanceof NoSuchConversation) throw new RelayError('not_found', 'no such conversation');
        await this.#judge(error);
        throw storeUnavailable();
      }
    });
  }

  /**
   * Takes the store down after a failed call, unless a probe shows that only this call failed: one large text may not
   * fit on the disk, and must not take the store down for other clients.
   */
  async #judge(error: unknown): Promise<void> {
    if (this.#state !== 'up') return;
    try {
      if (error instanceof OutcomeUnknown) throw error;
      await this.#probeNow();
    } catch {
      return this.fails(messageOf(error));
    }
    const nowMs = this.clock.monotonicMs();
    if (nowMs - this.#warnedMs < betweenWarningsMs) return;
    this.#warnedMs = nowMs;
    this.#observer.warned(`one call failed, and others work: ${messageOf(error)}`);
  }

  /** Runs a call that reads the whole file. A failure leaves the store up, because a turn may need less disk space. */
  askAside<R>(call: TableCall<R>): Promise<R> {
    const faultOf = (reason: string) => storeUnavailable(`the store cannot do this now: ${reason}`);
    if (this.#isUnread) return Promise.reject(faultOf(this.#trouble));
    return this.#askLong('upkeep', call, faultOf);
  }

  /** Runs a call of a start step. Rejects with a StoreFault. */
  readStored<R>(call: TableCall<R>): Promise<R> {
    return this.#askLong('restore', call, (reason) => {
      const Fault = diskFailure.test(reason) ? PassingFault : StoreFault;
      return new Fault(`the stored data cannot be read: ${reason}`);
    });
  }

  /** Resolves when removed text is erased from the files too. */
  async tidyAll(): Promise<void> {
    while (await this.askAside(call('file', 'tidy')));
  }

  /** Schedules erasing the removed text from the files. Called after a removal. */
  tidySoon(): void {
    if (this.#state !== 'closed') this.#stopTidy ??= this.clock.after(tidyMs, () => void this.#tidy());
  }

  /** Takes the store down: the file lacks expected data, or cannot be written. */
  fails(reason: string): void {
    if (this.#state !== 'up') return;
    this.#state = 'down';
    this.#trouble = reason;
    this.#probeSoon();
    this.#observer.down(reason);
  }

  /** Closes the file. Resolves with false if the disk hangs: then only SIGKILL ends the thread. */
  async closeFile(): Promise<boolean> {
    this.#state = 'closed';
    this.#stopProbe();
    this.#stopTidy?.();
    this.#settle().catch(() => {});
    return withLimit(
      this.#thread.closeThread().then(() => true),
      closeLimitMs,
      this.clock,
      () => false,
    );
  }

  /** Whether the file is down and was not read yet, so that no call can work. */
  get #isUnread(): boolean {
    return this.#state === 'down' && this.#steps.length > 0;
  }

  async #askSettled<R>(call: TableCall<R>): Promise<R> {
    if (this.#toSettle.length === 0) return this.#askInTime(call);
    throw new Error('an earlier write to the disk has not finished yet');
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

  /**
   * Rejects with `OutcomeUnknown` after the limit. While a call reads the whole file, all calls have the long limit.
   */
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

  /**
   * Resolves when all unknown outcomes are settled. Rejects if the file is not writable; the remaining ones are tried
   * at the next probe.
   */
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

  /** Probes the file, one probe at a time: a hanging disk answers none. */
  async #probe(): Promise<void> {
    try {
      await this.#takeSteps();
      await this.#settle();
      await this.#probeNow();
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

  /** Reports a new reason while the start fails: for example, the disk appears, but the file is in use. */
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
    // A failure leaves the store up: a turn may need less disk space.
    const hasMore = await this.#measured('tidy', () => this.#askSettled(call('file', 'tidy')).catch(() => true));
    this.#stopTidy = null;
    if (hasMore) this.tidySoon();
  }
}

/** Lets callers share one call while it runs. */
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

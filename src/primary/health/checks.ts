import type { Clock, StopTimer } from '../../shared/clock.js';
import { RelayError } from '../../shared/errors.js';
import type { LoginNames, ReadinessEntry, ReadinessTrigger, Verdict } from '../../shared/health.js';

export interface CheckSettings {
  readonly names: LoginNames;
  readonly adapter: string;
  /**
   * Interval of the checks in milliseconds; 0: checks run only at the start, when forced, and after a suspicious job.
   */
  readonly intervalMs: number;
  /** Whether checks in an interval are worth while. */
  readonly isInUse?: () => boolean;
  /** Number of checks in the history. */
  readonly historyLimit: number;
}

/**
 * Time limit of a check, after which the CLI counts as not ready. A check starts several programs, one after the
 * other. Each has 10 s, or 20 s if it is asked over stdin.
 */
const checkLimitMs = 60_000;
const tooLong: Verdict = { version: null, error: `the check took longer than ${checkLimitMs} ms` };
/** Intervals vary by ±10 %, so that several services do not check at the same time. */
const jitter = 0.1;
/**
 * Most checks after failures of jobs in a minute. Further ones wait, because each starts programs, and the jobs of one
 * client may fail all the time.
 */
const maxFailureChecks = 6;
const minuteMs = 60_000;
const asksAboutNow: ReadonlySet<ReadinessTrigger> = new Set(['forced', 'failure']);

interface Check {
  readonly entry: Promise<ReadinessEntry>;
  trigger: ReadinessTrigger;
}

/** Owns the schedule and the history of the checks of one model CLI. Concurrent callers share one check. */
export class Checks {
  readonly #judge: (trigger: ReadinessTrigger) => Promise<Verdict>;
  readonly #settings: CheckSettings;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #onChecked: (entry: ReadinessEntry) => void;
  readonly #unchecked: ReadinessEntry;
  readonly #history: ReadinessEntry[] = [];
  #running: Check | null = null;
  /** Check that begins when the running one has ended. */
  #next: Check | null = null;
  #stopTimer: StopTimer = () => {};
  /** Starts of the checks after failures in the last minute, monotonic. */
  #failureChecks: number[] = [];
  /** Stops the timer of a check after a failure that has to wait; null if none waits. */
  #stopLate: StopTimer | null = null;
  #isOver = false;

  /** `judge` performs one check. `random` returns a number from 0 to 1. */
  constructor(
    judge: (trigger: ReadinessTrigger) => Promise<Verdict>,
    settings: CheckSettings,
    { clock, random }: { readonly clock: Clock; readonly random: () => number },
    onChecked: (entry: ReadinessEntry) => void,
  ) {
    this.#judge = judge;
    this.#settings = settings;
    this.#clock = clock;
    this.#random = random;
    this.#onChecked = onChecked;
    const nothing = { status: 'unknown', checkedAt: null, durationMs: 0, trigger: 'start' } as const;
    this.#unchecked = { ...nothing, ...settings.names, adapter: settings.adapter, version: null, error: null };
  }

  get current(): ReadinessEntry {
    return this.#history.at(-1) ?? this.#unchecked;
  }

  /** Returns the checks, oldest first; with `since` (milliseconds since the epoch) only later ones. */
  history(since: number | null): readonly ReadinessEntry[] {
    return since === null ? this.#history : this.#history.filter((entry) => (entry.checkedAt ?? 0) > since);
  }

  startChecks(): void {
    void this.runCheck('start');
    this.#schedule();
  }

  /** Stops the checks. The result of a running check is not recorded, because the service ends its programs. */
  stopChecks(): void {
    this.#isOver = true;
    this.#stopTimer();
    this.#stopLate?.();
  }

  /** Checks again after a suspicious failure of a job, unless the CLI is already known not to be ready. */
  recheck(): void {
    if (this.current.status !== 'not_ready') void this.runCheck('failure');
  }

  /**
   * Runs or joins a check. A forced check, or one after a failure, never joins a check that began earlier for another
   * cause. After many failures within a minute, the next check waits. Never rejects.
   */
  runCheck(trigger: ReadinessTrigger): Promise<ReadinessEntry> {
    if (this.#isOver || (trigger === 'failure' && this.#isDelayed())) return Promise.resolve(this.current);
    if (this.#running === null) return this.#begin(trigger);
    if (this.#running.trigger === trigger || !asksAboutNow.has(trigger)) return this.#running.entry;
    this.#next ??= { entry: this.#running.entry.then(() => this.#beginNext()), trigger };
    if (trigger === 'forced') this.#next.trigger = trigger;
    return this.#next.entry;
  }

  /** Whether a check after a failure has to wait. If so, it follows when the minute is over. */
  #isDelayed(): boolean {
    const nowMs = this.#clock.monotonicMs();
    this.#failureChecks = this.#failureChecks.filter((ms) => nowMs - ms < minuteMs);
    const [oldest] = this.#failureChecks;
    if (oldest === undefined || this.#failureChecks.length < maxFailureChecks) return false;
    this.#stopLate ??= this.#clock.after(oldest + minuteMs - nowMs, () => {
      this.#stopLate = null;
      void this.runCheck('failure');
    });
    return true;
  }

  #begin(trigger: ReadinessTrigger): Promise<ReadinessEntry> {
    if (trigger === 'failure') this.#failureChecks.push(this.#clock.monotonicMs());
    const entry = this.#check(trigger).finally(() => {
      this.#running = null;
    });
    this.#running = { entry, trigger };
    return entry;
  }

  #beginNext(): Promise<ReadinessEntry> {
    const trigger = this.#next?.trigger ?? 'forced';
    this.#next = null;
    return this.runCheck(trigger);
  }

  async #check(trigger: ReadinessTrigger): Promise<ReadinessEntry> {
    const startedMs = this.#clock.monotonicMs();
    const checkedAt = this.#clock.now();
    const { version, error, isHeld = false } = await this.#verdict(trigger);
    if (this.#isOver) return this.current;
    const durationMs = Math.round(this.#clock.monotonicMs() - startedMs);
    const status = error === null ? 'ready' : 'not_ready';
    const found = { status, checkedAt, durationMs, trigger, version, error, ...(isHeld && { isHeld }) } as const;
    const entry = { ...this.#unchecked, ...found };
    this.#history.push(entry);
    if (this.#history.length > this.#settings.historyLimit) this.#history.shift();
    this.#onChecked(entry);
    return entry;
  }

  #verdict(trigger: ReadinessTrigger): Promise<Verdict> {
    return new Promise((resolve) => {
      const stopTimer = this.#clock.after(checkLimitMs, () => resolve(tooLong));
      const failed = (error: unknown) => ({
        version: null,
        error: error instanceof RelayError ? error.message : 'the check itself failed',
      });
      void this.#judge(trigger).catch(failed).then(resolve).finally(stopTimer);
    });
  }

  #schedule(): void {
    const { intervalMs } = this.#settings;
    if (intervalMs === 0) return;
    const waitMs = intervalMs * (1 + jitter * (2 * this.#random() - 1));
    this.#stopTimer = this.#clock.after(waitMs, () => {
      if (this.#settings.isInUse?.() !== false) void this.runCheck('interval');
      this.#schedule();
    });
  }
}

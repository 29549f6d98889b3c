import { type Clock, delay, type StopTimer } from '../../shared/clock.js';
import { RelayError } from '../../shared/errors.js';
import type { ReadinessEntry, ReadinessTrigger } from '../../shared/readiness.js';
import { Credential } from './credential.js';

export interface Verdict {
  readonly version: string | null;
  /** Why jobs can't be run; null when they can. */
  readonly error: string | null;
}

export interface ReadinessSettings {
  readonly adapter: string;
  /** Time between checks, milliseconds; 0: only at start, when forced and when a job shows otherwise. */
  readonly intervalMs: number;
  readonly historyLimit: number;
}

/** A check that takes longer counts as not ready; what it started is ended by its own limits. */
const checkLimitMs = 20_000;
/** Spread over ±10 %, so that the checks of several services do not meet. */
const jitter = 0.1;
const refusal =
  "the model CLI's credential was refused when a job used it: log in anew and recheck, or replace it and restart";
const asksAboutNow: ReadonlySet<ReadinessTrigger> = new Set(['forced', 'failure']);

interface Check {
  readonly entry: Promise<ReadinessEntry>;
  trigger: ReadinessTrigger;
}

/**
 * Owns the readiness of the model CLI and the history of its checks. One check runs at a time; who asks for the same
 * cause shares it. A check finds the CLI ready if it says so itself, and no job has shown that its credential is refused.
 */
export class Readiness {
  readonly #probe: () => Promise<Verdict>;
  readonly #settings: ReadinessSettings;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #onChecked: (entry: ReadinessEntry) => void;
  readonly #credential: Credential;
  readonly #history: ReadinessEntry[] = [];
  #running: Check | null = null;
  /** Begins when the running one has ended. */
  #next: Check | null = null;
  #stopTimer: StopTimer = () => {};
  #isOver = false;

  /** `random` gives numbers from 0 to 1. */
  constructor(
    probe: () => Promise<Verdict>,
    settings: ReadinessSettings,
    clock: Clock,
    random: () => number,
    onChecked: (entry: ReadinessEntry) => void,
  ) {
    this.#probe = probe;
    this.#settings = settings;
    this.#clock = clock;
    this.#random = random;
    this.#onChecked = onChecked;
    this.#credential = new Credential(clock);
  }

  get current(): ReadinessEntry {
    return this.#history.at(-1) ?? this.#entry('start', 'unknown', null, 0, { version: null, error: null });
  }

  get isCredentialRefused(): boolean {
    return this.#credential.isRefused;
  }

  /** Oldest first; with `since` (milliseconds since the epoch) only what was checked strictly later. */
  history(since: number | null): readonly ReadinessEntry[] {
    return since === null ? this.#history : this.#history.filter((entry) => (entry.checkedAt ?? 0) > since);
  }

  start(): void {
    void this.check('start');
    this.#schedule();
  }

  /** The service ends, and with it the programs of a check that runs: what is known stays as it is. */
  stop(): void {
    this.#isOver = true;
    this.#stopTimer();
  }

  /** A job failed in a way that casts doubt on the CLI: looks again, unless it is known already. */
  doubt(): void {
    if (this.current.status !== 'not_ready') void this.check('failure');
  }

  /** The API refused the credential of a job that began `agoMs` ago: not ready, until a later job or a forced check clears it. */
  refused(agoMs: number): void {
    if (this.#credential.refused(agoMs)) void this.check('failure');
    else this.doubt();
  }

  /** A job that began `agoMs` ago was answered. Returns whether the credential counted as refused until now. */
  answered(agoMs: number): boolean {
    const isNews = this.#credential.taken(agoMs);
    if (isNews) void this.check('failure');
    return isNews;
  }

  /**
   * Who forces a check, or has seen a failure, asks about now: a check that began earlier for another cause does not
   * answer that. Never rejects.
   */
  check(trigger: ReadinessTrigger): Promise<ReadinessEntry> {
    if (this.#isOver) return Promise.resolve(this.current);
    if (this.#running === null) return this.#begin(trigger);
    if (this.#running.trigger === trigger || !asksAboutNow.has(trigger)) return this.#running.entry;
    this.#next ??= { entry: this.#running.entry.then(() => this.#beginNext()), trigger };
    if (trigger === 'forced') this.#next.trigger = trigger;
    return this.#next.entry;
  }

  #begin(trigger: ReadinessTrigger): Promise<ReadinessEntry> {
    if (trigger === 'forced') this.#credential.forget();
    const entry = this.#check(trigger).finally(() => {
      this.#running = null;
    });
    this.#running = { entry, trigger };
    return entry;
  }

  #beginNext(): Promise<ReadinessEntry> {
    const trigger = this.#next?.trigger ?? 'forced';
    this.#next = null;
    return this.check(trigger);
  }

  async #check(trigger: ReadinessTrigger): Promise<ReadinessEntry> {
    const startedMs = this.#clock.monotonicMs();
    const checkedAt = this.#clock.now();
    const { version, error: ownError } = await this.#verdict();
    if (this.#isOver) return this.current;
    const error = ownError ?? (this.#credential.isRefused ? refusal : null);
    const durationMs = Math.round(this.#clock.monotonicMs() - startedMs);
    const status = error === null ? 'ready' : 'not_ready';
    const entry = this.#entry(trigger, status, checkedAt, durationMs, { version, error });
    this.#history.push(entry);
    if (this.#history.length > this.#settings.historyLimit) this.#history.shift();
    this.#onChecked(entry);
    return entry;
  }

  async #verdict(): Promise<Verdict> {
    const late = { version: null, error: `the check took longer than ${checkLimitMs} ms` };
    try {
      return await Promise.race([this.#probe(), delay(this.#clock, checkLimitMs).then(() => late)]);
    } catch (error) {
      return { version: null, error: error instanceof RelayError ? error.message : 'the check itself failed' };
    }
  }

  #entry(
    trigger: ReadinessTrigger,
    status: ReadinessEntry['status'],
    checkedAt: number | null,
    durationMs: number,
    { version, error }: Verdict,
  ): ReadinessEntry {
    return { status, checkedAt, durationMs, trigger, adapter: this.#settings.adapter, version, error };
  }

  #schedule(): void {
    const { intervalMs } = this.#settings;
    if (intervalMs === 0) return;
    const waitMs = intervalMs * (1 + jitter * (2 * this.#random() - 1));
    this.#stopTimer = this.#clock.after(waitMs, () => {
      void this.check('interval');
      this.#schedule();
    });
  }
}

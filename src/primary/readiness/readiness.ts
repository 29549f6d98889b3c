import { type Clock, delay, type StopTimer } from '../../shared/clock.js';
import { type CliReason, RelayError } from '../../shared/errors.js';
import type { ReadinessEntry, ReadinessTrigger, Verdict } from '../../shared/health.js';
import type { JobEnd } from '../../shared/job.js';
import { SeenClients } from '../limits/seen-clients.js';
import { Credential } from './credential.js';
import { FailureStreak } from './failure-streak.js';

export interface ReadinessSettings {
  /** The name of the CLI. */
  readonly cli: string;
  readonly adapter: string;
  /** Time between checks, milliseconds; 0: only at start, when forced and when a job shows otherwise. */
  readonly intervalMs: number;
  readonly historyLimit: number;
}

/** A check that takes longer counts as not ready. The programs that it has started have limits of their own. */
const checkLimitMs = 20_000;
/** Intervals vary by ±10 %, so that the checks of several services do not fall together. */
const jitter = 0.1;
const refusal =
  "the model CLI's credential was refused when a job used it: log in anew and recheck, or replace it and restart";
const asksAboutNow: ReadonlySet<ReadinessTrigger> = new Set(['forced', 'failure']);

interface Check {
  readonly entry: Promise<ReadinessEntry>;
  trigger: ReadinessTrigger;
}

/**
 * Owns the readiness of the model CLI and the history of its checks. One check runs at a time and is shared by all who ask
 * for the same cause. The CLI is ready if it says so itself, no job has shown that its credential is refused, and jobs do
 * not fail one after the other.
 */
export class Readiness {
  readonly #probe: () => Promise<Verdict>;
  readonly #settings: ReadinessSettings;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #onChecked: (entry: ReadinessEntry) => void;
  readonly #credential: Credential;
  readonly #streak: FailureStreak;
  readonly #unchecked: ReadinessEntry;
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
    onChecked: (entry: ReadinessEntry) => void = () => {},
    clients = new SeenClients(),
  ) {
    this.#probe = probe;
    this.#settings = settings;
    this.#clock = clock;
    this.#random = random;
    this.#onChecked = onChecked;
    this.#credential = new Credential(clock);
    this.#streak = new FailureStreak(clock, clients);
    const nothing = { status: 'unknown', checkedAt: null, durationMs: 0, trigger: 'start' } as const;
    this.#unchecked = { ...nothing, cli: settings.cli, adapter: settings.adapter, version: null, error: null };
  }

  get current(): ReadinessEntry {
    return this.#history.at(-1) ?? this.#unchecked;
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

  /** The service ends, and with it the programs of a running check. The last entry stays as it is. */
  stop(): void {
    this.#isOver = true;
    this.#stopTimer();
  }

  /** A job failed in a way that casts doubt on the CLI: checks again, unless it is known not to be ready. */
  doubt(): void {
    if (this.current.status !== 'not_ready') void this.check('failure');
  }

  /**
   * A job of this client failed for a fault of the CLI, of this class; null: for one that no request can cause. The CLI
   * goes on getting jobs: only one that is answered can show that it is well.
   */
  failed(failureClass: string, client: string | null): void {
    if (this.#streak.failed(failureClass, client)) void this.check('failure');
  }

  /** The API refused the credential of a job that began `agoMs` ago. The CLI is not ready until a later job is answered, or a check is forced. */
  refused(agoMs: number): void {
    if (this.#credential.learn(agoMs, true)) void this.check('failure');
    else this.doubt();
  }

  /**
   * A job that began `agoMs` ago was answered. Returns whether the credential counted as refused until now. What a check
   * has found wrong, such as a full disk, may be over: it is looked at again.
   */
  answered(agoMs: number): boolean {
    this.#streak.answered();
    const isNews = this.#credential.learn(agoMs, false);
    const isContradicted = this.current.status === 'not_ready' && !this.#credential.isRefused;
    if (isNews || isContradicted) void this.check('failure');
    return isNews;
  }

  /** A forced check, or one after a failure, asks about now: it shares no check that began earlier. Never rejects. */
  check(trigger: ReadinessTrigger): Promise<ReadinessEntry> {
    if (this.#isOver) return Promise.resolve(this.current);
    if (this.#running === null) return this.#begin(trigger);
    if (this.#running.trigger === trigger || !asksAboutNow.has(trigger)) return this.#running.entry;
    this.#next ??= { entry: this.#running.entry.then(() => this.#beginNext()), trigger };
    if (trigger === 'forced') this.#next.trigger = trigger;
    return this.#next.entry;
  }

  #begin(trigger: ReadinessTrigger): Promise<ReadinessEntry> {
    if (trigger === 'forced') {
      this.#credential.learn(0, false); // it may have been replaced
      this.#streak.excuse();
    }
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
    const { version, error: ownError, isHeld = false } = await this.#verdict();
    if (this.#isOver) return this.current;
    const error = ownError ?? (this.#credential.isRefused ? refusal : this.#streak.fault);
    const durationMs = Math.round(this.#clock.monotonicMs() - startedMs);
    const status = error === null ? 'ready' : 'not_ready';
    const found = { status, checkedAt, durationMs, trigger, version, error, ...(isHeld && { isHeld }) } as const;
    const entry = { ...this.#unchecked, ...found };
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

/** What a program itself has got wrong. All other reasons tell of its account, of the API, or of what it was asked. */
const faultsOfCli: ReadonlySet<string> = new Set(['crashed', 'empty_answer', 'other'] satisfies CliReason[]);

/**
 * Tells the readiness what the end of a client's job shows of the CLI. Returns whether processes that wait may hold an
 * invalid credential. Where no code says that the account is refused, only a check or the breaker can tell.
 */
export function learnFrom(
  end: JobEnd,
  readiness: Pick<Readiness, 'answered' | 'refused' | 'doubt' | 'failed'>,
  client: string,
): boolean {
  if (end.outcome === 'ok') return readiness.answered(end.executionMs);
  const { reason = '', scope } = end.failure;
  if (end.outcome === 'spawn_error') {
    readiness.failed(end.outcome, null);
    readiness.doubt();
    return true;
  }
  if (end.outcome !== 'cli_error') return false;
  if (faultsOfCli.has(reason)) readiness.failed(reason, client);
  if (reason !== 'auth') return false;
  if (scope === 'account') readiness.refused(end.executionMs);
  else readiness.doubt();
  return scope === 'account';
}

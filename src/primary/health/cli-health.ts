import { type Clock, timestamp } from '../../shared/clock.js';
import type { CliReason } from '../../shared/errors.js';
import {
  type QuotaWindow,
  type QuotaWindowName,
  quotaWindowNames,
  type ReadinessEntry,
  type ReadinessTrigger,
  type Verdict,
} from '../../shared/health.js';
import type { JobEnd, JobFailed } from '../../shared/job.js';
import type { Logger } from '../../shared/log/logger.js';
import type { Waiting } from '../cli/contract/adapter.js';
import { type CheckSettings, Checks } from './checks.js';
import { type CircuitJob, type CircuitStatus, Circuits } from './circuit.js';
import { Evidence, type SeenClients } from './evidence.js';

export interface HealthSettings extends CheckSettings {
  /** The circuit of a job that names no model. */
  readonly usual: string;
}

export interface HealthParts {
  /** Asks the CLI whether it can run jobs. */
  readonly probe: (trigger: ReadinessTrigger) => Promise<Verdict>;
  /** What requests call the model of a circuit. */
  readonly publicName: (model: string | null) => string | null;
  readonly clients: SeenClients;
  readonly clock: Clock;
  /** Numbers from 0 to 1. */
  readonly random: () => number;
  readonly log: Logger;
  readonly onChecked: (entry: ReadinessEntry) => void;
  readonly onCircuit: (status: CircuitStatus) => void;
  /** Processes that wait may hold a credential that is refused, or a program that does not start. */
  readonly onSpoiled: () => void;
}

/** The API of the model refuses requests, and a job has reported it. Times are monotonic. */
interface Shortage {
  readonly reason: 'quota' | 'overloaded';
  readonly sinceMs: number;
  readonly untilMs: number;
}

/** If an overloaded API does not say when it may be asked again. */
const overloadedMs = 30_000;

/** Ends of jobs are in whole milliseconds. */
const roundingMs = 1;
/** The faults of a program itself. All other reasons come from its account, from the API, or from the request. */
const faultsOfCli: ReadonlySet<string> = new Set(['crashed', 'empty_answer', 'other'] satisfies CliReason[]);

/**
 * Owns whether one model CLI is usable: it is, if it says so itself, no job has shown that its credential is refused, jobs
 * do not fail one after the other, and its account lets jobs through. Each of its parts is read where it is shown.
 */
export class CliHealth {
  readonly checks: Checks;
  readonly circuits: Circuits;
  readonly windows: QuotaWindows;
  readonly #parts: HealthParts;
  readonly #evidence: Evidence;
  #saysNotReady = false;
  #shortage: Shortage | null = null;

  constructor(settings: HealthSettings, parts: HealthParts) {
    const { clock, clients, onChecked } = parts;
    this.#parts = parts;
    this.#evidence = new Evidence(clock, clients);
    this.windows = new QuotaWindows(clock);
    this.circuits = new Circuits(settings.usual, clock, (status) => this.#circuitChanged(status));
    this.checks = new Checks((trigger) => this.#judge(trigger), settings, parts, onChecked);
  }

  stop(): void {
    this.checks.stop();
    this.circuits.stop();
  }

  /** The model CLI has reported the quota of its account. */
  reported(windows: readonly QuotaWindow[]): void {
    for (const { name, utilization, resetsAt } of this.windows.report(windows)) {
      const resets_at = resetsAt === null ? null : timestamp(resetsAt);
      this.#parts.log.warn('quota_warning', { window: name, utilization, resets_at });
    }
  }

  /** A program waits before it asks the API again. A limit of one model does not concern the jobs that name none. */
  apiWaits({ route }: Pick<CircuitJob, 'route'>, { ms, failure: { reason, quota } }: Waiting): void {
    const isOfOthers = quota?.scope === 'model' && route.circuit !== this.circuits.usual;
    if (reason === 'overloaded' || (reason === 'quota' && !isOfOthers)) this.#lacksRoom(reason, ms);
  }

  /** Why jobs wait or fail, though they are started, and until when, in milliseconds since the epoch; null if they do not. */
  get shortage(): { readonly reason: Shortage['reason']; readonly until: number } | null {
    const { clock } = this.#parts;
    if (this.#shortage === null) return null;
    const leftMs = this.#shortage.untilMs - clock.monotonicMs();
    return leftMs <= 0 ? null : { reason: this.#shortage.reason, until: clock.now() + leftMs };
  }

  #lacksRoom(reason: Shortage['reason'], ms: number): void {
    const { log, clock } = this.#parts;
    if (this.shortage === null) log.warn('api_busy', { reason, until: timestamp(clock.now() + ms) });
    const nowMs = clock.monotonicMs();
    this.#shortage = { reason, sinceMs: nowMs, untilMs: nowMs + ms };
  }

  /** An operator, who may know better, asks: the next job is let through, and what the last ones showed is forgotten. */
  forceCheck(): Promise<ReadinessEntry> {
    if (this.#evidence.isCredentialRefused) this.#parts.onSpoiled();
    this.#evidence.forgetRefusals();
    this.#shortage = null;
    this.circuits.tryAgain();
    return this.checks.check('forced');
  }

  /** Learns from the end of a job. Returns the end for the caller, with the time to wait. */
  ended(job: CircuitJob, end: JobEnd, hadSlot: boolean): JobEnd {
    if (hadSlot) this.#learn(job, end);
    this.circuits.left(job);
    return end.outcome === 'cli_error' ? this.#withRetry(job, end) : end;
  }

  #learn(job: CircuitJob, end: JobEnd): void {
    const beganMs = this.#parts.clock.monotonicMs() - end.executionMs + roundingMs;
    if (end.outcome === 'ok') this.#answered(job, beganMs);
    else if (end.outcome === 'spawn_error') this.#notStarted(end.outcome);
    else if (end.outcome !== 'cli_error') return;
    else if (end.failure.reason === 'auth') this.#unauthorized(job, end, beganMs);
    else if (end.failure.reason === 'quota') this.#exhausted(job, end, beganMs);
    else if (end.failure.reason === 'overloaded') this.#overloaded(end);
    else if (faultsOfCli.has(end.failure.reason ?? '')) this.#failed(end.failure.reason ?? '', job.request.client);
  }

  /** What a check has found wrong, such as a full disk, may be over then: it is checked again. */
  #answered(job: CircuitJob, beganMs: number): void {
    this.circuits.served(job); // its answer may have had no text
    if (this.#shortage !== null && beganMs >= this.#shortage.sinceMs) this.#shortage = null;
    const isNews = this.#evidence.answered(job.route.circuit, beganMs);
    const isContradicted = this.checks.current.status === 'not_ready' && !this.#evidence.isCredentialRefused;
    if (isNews || isContradicted) void this.checks.check('failure');
    if (isNews) this.#parts.onSpoiled();
  }

  #notStarted(failureClass: string): void {
    this.#failed(failureClass, null);
    this.checks.recheck();
    this.#parts.onSpoiled();
  }

  /** The CLI still gets jobs: only one that is answered can show that it is well. */
  #failed(failureClass: string, client: string | null): void {
    if (this.#evidence.failed(failureClass, client)) void this.checks.check('failure');
  }

  /**
   * One refusal may be a token that was just renewed. A code of the account is about the account. Anything else is about
   * the model that the job names: only jobs that name none, or a check, speak for the account then.
   */
  #unauthorized({ request, route }: CircuitJob, { failure }: JobFailed, beganMs: number): void {
    const { account, usual } = this.circuits;
    const isCertain = failure.scope === 'account';
    const model = isCertain || route.circuit === usual ? null : route.circuit;
    this.#evidence.suspectCredential();
    const lasts = this.#evidence.confirms(model, { client: request.client, beganMs, isCertain });
    if (lasts || (isCertain && account.isProbe(request))) this.circuits.of(model).refused(request, 'auth', null);
    if (isCertain && this.#evidence.refuseCredential(beganMs)) void this.checks.check('failure');
    else this.checks.recheck();
    if (isCertain) this.#parts.onSpoiled();
  }

  /** Where no code says so, it takes a second failure, too. */
  #exhausted({ request, route }: CircuitJob, { failure }: JobFailed, beganMs: number): void {
    const { scope, resetsAt } = failure.quota ?? { scope: 'model', resetsAt: null };
    const model = scope === 'account' ? null : route.circuit;
    const refusal = { client: request.client, beganMs, isCertain: false };
    const lasts = failure.quota !== undefined || this.#evidence.confirms(model, refusal);
    if (lasts) this.circuits.of(model).refused(request, 'quota', resetsAt);
  }

  #overloaded({ failure: { retryAfterSeconds } }: JobFailed): void {
    this.#lacksRoom('overloaded', retryAfterSeconds === undefined ? overloadedMs : retryAfterSeconds * 1000);
  }

  #withRetry(job: CircuitJob, end: JobFailed): JobFailed {
    const { failure } = end;
    if (failure.reason !== 'quota' && failure.reason !== 'auth') return end;
    const retryAfterSeconds = failure.retryAfterSeconds ?? this.circuits.refusal(job)?.retryAfterSeconds;
    return { ...end, failure: { ...failure, retryAfterSeconds } };
  }

  /** The verdict of one check: of the CLI itself, else of its account, else of its jobs. */
  async #judge(trigger: ReadinessTrigger): Promise<Verdict> {
    if (trigger === 'forced') this.#evidence.reset(this.#parts.clock.monotonicMs() + roundingMs);
    const verdict = await this.#parts.probe(trigger);
    this.#learnFromCheck(verdict);
    if (verdict.error !== null) return verdict;
    const { error } = this.circuits;
    return error === null ? { ...verdict, error: this.#evidence.fault } : { ...verdict, error, isHeld: true };
  }

  #learnFromCheck({ error, reason = 'auth' }: Verdict): void {
    const { account } = this.circuits;
    const isAuth = account.state.name !== 'closed' && account.state.reason === 'auth';
    const isSuspected = isAuth || this.#evidence.isCredentialSuspected;
    if (error !== null && reason === 'auth' && isSuspected) account.refused(null, 'auth', null);
    if (error === null && this.#saysNotReady && isAuth) account.tryAgain();
    this.#saysNotReady = error !== null;
  }

  /** The CLI is checked, so that the history shows each change. */
  #circuitChanged(status: CircuitStatus): void {
    const { log, publicName, onCircuit, onSpoiled } = this.#parts;
    const { state, reason, until } = status;
    const model = publicName(status.model);
    if (state === 'closed') this.#evidence.forget(status.model);
    if (state === 'open') log.warn('breaker_open', { reason, model, until: until === null ? null : timestamp(until) });
    if (state === 'closed') log.info('breaker_closed', { model });
    onCircuit(status);
    if (state === 'open' && reason === 'auth' && status.model === null) onSpoiled();
    void this.checks.check('failure');
  }
}

/** A program that reports nonsense must not be believed for longer than the longest window lasts. */
const maxAgeMs = 8 * 24 * 60 * 60_000;

interface Heard {
  readonly window: QuotaWindow;
  readonly heardMs: number;
}

/** Owns the last report of each window of its account, until the window's reset. */
export class QuotaWindows {
  readonly #clock: Clock;
  readonly #heard = new Map<QuotaWindowName, Heard>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns those that are about to close, and were not before. */
  report(windows: readonly QuotaWindow[]): readonly QuotaWindow[] {
    const before = new Map(this.current.map((window) => [window.name, window]));
    for (const { name, status, utilization, resetsAt } of windows) {
      const window = { name, status, utilization: sane(utilization), resetsAt: this.#sane(resetsAt) };
      this.#heard.set(name, { window, heardMs: this.#clock.monotonicMs() });
    }
    return this.current.filter(({ name, status }) => status === 'warning' && before.get(name)?.status !== 'warning');
  }

  get current(): readonly QuotaWindow[] {
    const now = this.#clock.now();
    const oldestMs = this.#clock.monotonicMs() - maxAgeMs;
    return [...this.#heard.values()].flatMap(({ window, heardMs }) =>
      heardMs >= oldestMs && (window.resetsAt ?? now + 1) > now ? [window] : [],
    );
  }

  /** By window; 0 where nothing is known. */
  get utilization(): Readonly<Record<string, number>> {
    const known = new Map(this.current.map(({ name, utilization }) => [name, utilization ?? 0]));
    return Object.fromEntries(quotaWindowNames.map((name) => [name, known.get(name) ?? 0]));
  }

  #sane(resetsAt: number | null): number | null {
    const isSane = resetsAt !== null && Math.abs(resetsAt - this.#clock.now()) <= maxAgeMs;
    return isSane ? resetsAt : null;
  }
}

/** It may be a little above 1. */
function sane(utilization: number | null): number | null {
  return utilization !== null && utilization >= 0 && utilization <= 100 ? utilization : null;
}

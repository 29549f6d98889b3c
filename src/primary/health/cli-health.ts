import { setNewest } from '../../shared/bounded-map.js';
import type { ClientText } from '../../shared/client.js';
import { type Clock, timestamp } from '../../shared/clock.js';
import { type CliReason, retryAfter } from '../../shared/errors.js';
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
  /** Circuit of a job that names no model. */
  readonly defaultCircuit: string;
}

export interface HealthParts {
  /** Asks the CLI whether it can run jobs. */
  readonly probe: (trigger: ReadinessTrigger) => Promise<Verdict>;
  /** Returns the public name of a circuit's model. */
  readonly publicName: (model: string | null) => string | null;
  readonly clients: SeenClients;
  readonly clock: Clock;
  /** Returns a random number, at least 0 and below 1, which spreads the times of checks. */
  readonly random: () => number;
  readonly log: Logger;
  readonly onChecked: (entry: ReadinessEntry) => void;
  readonly onCircuit: (status: CircuitStatus) => void;
  /** Called when idle processes should be replaced, because they may use a refused credential or a broken program. */
  readonly onSpoiled: () => void;
}

/** The API of the model refuses requests, and a job has reported it. Times are monotonic. */
interface Shortage {
  readonly reason: 'quota' | 'overloaded';
  readonly sinceMs: number;
  readonly untilMs: number;
}

/** Models with a shortage that are remembered, because clients may send any model name. */
const maxShortages = 16;
/** Time for which an overloaded API counts as busy if it names no time. */
const overloadedMs = 30_000;

/** Wait for a client whose request alone has exceeded a quota, so that no job of others waits. */
const aloneMs = 30_000;

/** Rounding error of job durations, which are in whole milliseconds. */
const roundingMs = 1;
/** Failures caused by the program itself. All other reasons come from its account, the API or the request. */
const faultsOfCli: ReadonlySet<string> = new Set(['crashed', 'empty_answer', 'other'] satisfies CliReason[]);

/**
 * Owns whether one model CLI is usable. A CLI is usable if its readiness check succeeds, no job has shown that its
 * credential is refused, jobs do not fail repeatedly, and its account has quota. Each part has public state.
 */
export class CliHealth {
  readonly checks: Checks;
  readonly circuits: Circuits;
  readonly windows: QuotaWindows;
  readonly #parts: HealthParts;
  readonly #evidence: Evidence;
  #saysNotReady = false;
  /** Whether the last check found that the login is missing. */
  #lacksLogin = false;
  /** Last quota or overload refusal of each model, by its circuit, and of the whole account, under null. */
  readonly #shortages = new Map<string | null, Shortage>();

  constructor(settings: HealthSettings, parts: HealthParts) {
    const { clock, clients, onChecked } = parts;
    this.#parts = parts;
    this.#evidence = new Evidence(clock, clients);
    this.windows = new QuotaWindows(clock);
    this.circuits = new Circuits(settings.defaultCircuit, clock, (status) => this.#circuitChanged(status));
    this.checks = new Checks((trigger) => this.#judge(trigger), settings, parts, onChecked);
  }

  /** Whether somebody has to log in: the login is missing, or the credential is refused. */
  get needsLogin(): boolean {
    const { state } = this.circuits.account;
    return this.#lacksLogin || (state.name !== 'closed' && state.reason === 'auth');
  }

  /** Stops the checks, and the trials of circuits. */
  stopChecks(): void {
    this.checks.stopChecks();
    this.circuits.stopTrials();
  }

  /** Records a quota report of the model CLI, and logs warnings. */
  recordQuota(windows: readonly QuotaWindow[]): void {
    for (const { name, utilization, resetsAt } of this.windows.recordReport(windows)) {
      const resets_at = resetsAt === null ? null : timestamp(resetsAt);
      this.#parts.log.warn('quota_warning', { window: name, utilization, resets_at });
    }
  }

  /** Records that a program waits before it asks the API again. */
  recordApiWait({ route }: Pick<CircuitJob, 'route'>, { ms, failure: { reason, quota } }: Waiting): void {
    const model = quota?.scope === 'account' ? null : route.circuit;
    if (reason === 'overloaded' || reason === 'quota') this.#recordShortage(model, reason, ms);
  }

  /**
   * Why the API refuses the requests of jobs that name no model, and until when, in milliseconds since the epoch; null if
   * it accepts them.
   */
  get shortage(): { readonly reason: Shortage['reason']; readonly until: number } | null {
    const { clock } = this.#parts;
    const shortage = this.#shortageOf(null) ?? this.#shortageOf(this.circuits.defaultCircuit);
    return shortage && { reason: shortage.reason, until: clock.now() + shortage.untilMs - clock.monotonicMs() };
  }

  /** Returns the shortage of a model, or (null) of the account, that is not over; null if there is none. */
  #shortageOf(model: string | null): Shortage | null {
    const shortage = this.#shortages.get(model);
    return shortage !== undefined && shortage.untilMs > this.#parts.clock.monotonicMs() ? shortage : null;
  }

  #recordShortage(model: string | null, reason: Shortage['reason'], ms: number): void {
    const { log, clock, publicName } = this.#parts;
    const until = timestamp(clock.now() + ms);
    if (this.#shortageOf(model) === null) log.warn('api_busy', { reason, model: publicName(model), until });
    const nowMs = clock.monotonicMs();
    setNewest(this.#shortages, model, { reason, sinceMs: nowMs, untilMs: nowMs + ms }, maxShortages);
  }

  /** Checks at the request of an operator: forgets earlier refusals, and lets the next job through. */
  forceCheck(): Promise<ReadinessEntry> {
    if (this.#evidence.isCredentialRefused) this.#parts.onSpoiled();
    this.#evidence.forgetAllRefusals();
    this.#shortages.clear();
    this.circuits.tryAgain();
    return this.checks.runCheck('forced');
  }

  /**
   * Evaluates the end of a job. Returns the end for the caller, with `Retry-After` if jobs are blocked. `hasProof`: whether
   * the end shows something about the model, so that the job had a slot, and was not cut before the model said anything.
   */
  recordJobEnd(job: CircuitJob, end: JobEnd, hasProof: boolean): JobEnd {
    if (hasProof) this.#learn(job, end);
    this.circuits.recordEnd(job);
    return end.outcome === 'cli_error' ? this.#withRetry(job, end) : end;
  }

  #learn(job: CircuitJob, end: JobEnd): void {
    const beganMs = this.#parts.clock.monotonicMs() - end.executionMs + roundingMs;
    if (end.outcome === 'ok') this.#recordAnswer(job, beganMs);
    else if (end.outcome === 'spawn_error') this.#recordFailedStart(end.outcome);
    else if (end.outcome !== 'cli_error') return;
    else if (end.failure.reason === 'auth') this.#recordRefusedCredential(job, end, beganMs);
    else if (end.failure.reason === 'quota') this.#recordExhaustedQuota(job, end, beganMs);
    else if (end.failure.reason === 'overloaded') this.#recordOverload(job, end);
    else if (faultsOfCli.has(end.failure.reason ?? ''))
      this.#recordFailure(end.failure.reason ?? '', job.request.client);
  }

  /**
   * Records an answered job. If the last check failed, for example because of a full disk, the CLI is checked again,
   * because the fault may be over.
   */
  #recordAnswer(job: CircuitJob, beganMs: number): void {
    this.circuits.recordAnswer(job); // the circuit may not know the answer yet, because it has no text
    for (const model of [null, job.route.circuit]) {
      const shortage = this.#shortages.get(model);
      if (shortage !== undefined && beganMs >= shortage.sinceMs) this.#shortages.delete(model);
    }
    const isNews = this.#evidence.recordAnswer(job.route.circuit, beganMs);
    const isContradicted = this.checks.current.status === 'not_ready' && !this.#evidence.isCredentialRefused;
    if (isNews || isContradicted) void this.checks.runCheck('failure');
    if (isNews) this.#parts.onSpoiled();
  }

  #recordFailedStart(failureClass: string): void {
    this.#recordFailure(failureClass, null);
    this.checks.recheck();
    this.#parts.onSpoiled();
  }

  /**
   * Records a failure of the program. The CLI still gets jobs, because only an answered job can show that it has
   * recovered.
   */
  #recordFailure(failureClass: string, client: ClientText | null): void {
    if (this.#evidence.recordFailure(failureClass, client)) void this.checks.runCheck('failure');
  }

  /**
   * Records a refused credential. A single refusal may be caused by a token that was being renewed. If the error code
   * names the account, the refusal counts for the account. Otherwise it counts for the model of the job; only jobs
   * without a model name, or a check, then count for the account.
   */
  #recordRefusedCredential({ request, route }: CircuitJob, { failure }: JobFailed, beganMs: number): void {
    const { account, defaultCircuit } = this.circuits;
    const isCertain = failure.scope === 'account';
    const model = isCertain || route.circuit === defaultCircuit ? null : route.circuit;
    this.#evidence.suspectCredential();
    const lasts = this.#evidence.recordRefusal(model, { client: request.client, beganMs, isCertain });
    if (lasts || (isCertain && account.isProbe(request)))
      this.circuits.circuitOf(model).recordRefusal(request, 'auth', null);
    if (isCertain && this.#evidence.refuseCredential(beganMs)) void this.checks.runCheck('failure');
    else this.checks.recheck();
    if (isCertain) this.#parts.onSpoiled();
  }

  /**
   * Records an exhausted quota. If no error code confirms it, a second failure is required. An API also refuses one
   * request that is too large for the limit of a minute. So without the end of a window, a refusal of one client alone
   * proves nothing if there are several clients.
   */
  #recordExhaustedQuota({ request, route }: CircuitJob, { failure }: JobFailed, beganMs: number): void {
    const { scope, resetsAt } = failure.quota ?? { scope: 'model', resetsAt: null };
    const model = scope === 'account' ? null : route.circuit;
    const { client } = request;
    const isOfWindow = scope === 'account' || resetsAt !== null;
    const isProven = failure.quota !== undefined && (isOfWindow || this.#parts.clients.mayAccuse(client));
    const lasts = isProven || this.#evidence.recordRefusal(model, { client, beganMs, isCertain: false });
    if (lasts) this.circuits.circuitOf(model).recordRefusal(request, 'quota', resetsAt);
  }

  #recordOverload({ route }: CircuitJob, { failure: { retryAfterSeconds } }: JobFailed): void {
    const ms = retryAfterSeconds === undefined ? overloadedMs : retryAfterSeconds * 1000;
    this.#recordShortage(route.circuit, 'overloaded', ms);
  }

  #withRetry(job: CircuitJob, end: JobFailed): JobFailed {
    const { failure } = end;
    if (failure.reason !== 'quota' && failure.reason !== 'auth') return end;
    const aloneSeconds = failure.quota && retryAfter('cli_blocked', aloneMs);
    const blockedSeconds = this.circuits.refusalOf(job)?.retryAfterSeconds;
    const retryAfterSeconds = failure.retryAfterSeconds ?? blockedSeconds ?? aloneSeconds;
    return { ...end, failure: { ...failure, retryAfterSeconds } };
  }

  /** Returns the verdict of one check, by the CLI itself, else by its circuits, else by earlier jobs. */
  async #judge(trigger: ReadinessTrigger): Promise<Verdict> {
    if (trigger === 'forced') this.#evidence.beginForcedCheck(this.#parts.clock.monotonicMs() + roundingMs);
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
    if (error !== null && reason === 'auth' && isSuspected) account.recordRefusal(null, 'auth', null);
    if (error === null && this.#saysNotReady && isAuth) account.tryAgain();
    this.#saysNotReady = error !== null;
    this.#lacksLogin = error !== null && reason === 'auth';
  }

  /** Reacts to a changed circuit. The CLI is checked, so that the history shows each change. */
  #circuitChanged(status: CircuitStatus): void {
    const { log, publicName, onCircuit, onSpoiled } = this.#parts;
    const { state, reason, until } = status;
    const model = publicName(status.model);
    if (state === 'closed') this.#evidence.forgetRefusalsOf(status.model);
    if (state === 'open') log.warn('breaker_open', { reason, model, until: until === null ? null : timestamp(until) });
    if (state === 'closed') log.info('breaker_closed', { model });
    onCircuit(status);
    if (state === 'open' && reason === 'auth' && status.model === null) onSpoiled();
    void this.checks.runCheck('failure');
  }
}

/** Maximum age of a report: longer than the longest quota window, so that a wrong report expires. */
const maxAgeMs = 8 * 24 * 60 * 60_000;

interface LastQuotaReport {
  readonly window: QuotaWindow;
  readonly reportedMs: number;
}

/** Owns the last report of each quota window of the account, until the window resets. */
export class QuotaWindows {
  readonly #clock: Clock;
  readonly #reports = new Map<QuotaWindowName, LastQuotaReport>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Records a report. Returns the windows that have newly reached their warning level. */
  recordReport(windows: readonly QuotaWindow[]): readonly QuotaWindow[] {
    const before = new Map(this.current.map((window) => [window.name, window]));
    for (const { name, status, utilization, resetsAt } of windows) {
      const window = {
        name,
        status,
        utilization: plausibleShare(utilization),
        resetsAt: this.#plausibleTime(resetsAt),
      };
      this.#reports.set(name, { window, reportedMs: this.#clock.monotonicMs() });
    }
    return this.current.filter(({ name, status }) => status === 'warning' && before.get(name)?.status !== 'warning');
  }

  get current(): readonly QuotaWindow[] {
    const now = this.#clock.now();
    const oldestMs = this.#clock.monotonicMs() - maxAgeMs;
    return [...this.#reports.values()].flatMap(({ window, reportedMs }) =>
      reportedMs >= oldestMs && (window.resetsAt ?? now + 1) > now ? [window] : [],
    );
  }

  /** Used share by window; 0 if it is unknown. */
  get utilization(): Readonly<Record<string, number>> {
    const known = new Map(this.current.map(({ name, utilization }) => [name, utilization ?? 0]));
    return Object.fromEntries(quotaWindowNames.map((name) => [name, known.get(name) ?? 0]));
  }

  #plausibleTime(resetsAt: number | null): number | null {
    const isSane = resetsAt !== null && Math.abs(resetsAt - this.#clock.now()) <= maxAgeMs;
    return isSane ? resetsAt : null;
  }
}

/** Returns null for an implausible share. A share may be slightly above 1. */
function plausibleShare(utilization: number | null): number | null {
  return utilization !== null && utilization >= 0 && utilization <= 100 ? utilization : null;
}

import type { Clock } from '../../shared/clock.js';
import type { ErrorReason, RelayError } from '../../shared/errors.js';
import { type BreakerReason, breakerReasons, type QuotaWindow } from '../../shared/health.js';
import type { JobEnd, JobFailed, JobRequest } from '../../shared/job.js';
import { Circuit, type CircuitStatus } from './circuit.js';
import { QuotaWindows } from './quota-windows.js';
import { SeenClients } from './seen-clients.js';
import { Suspicions } from './suspicions.js';

interface CheckedError {
  readonly error: string | null;
  /** Missing where the CLI does not say more than that it can't run jobs. */
  readonly reason?: ErrorReason | undefined;
}

/** A job, which is known by its request, as far as its breaker goes. */
export interface CircuitJob {
  readonly request: JobRequest;
  /** `circuit`: what the account calls the model that it names; '' for none. */
  readonly route: { readonly circuit: string };
}

export interface BreakerListener {
  changed(status: CircuitStatus): void;
  /** A window of the account's quota is about to close. */
  windowClosing(window: QuotaWindow): void;
}

/** Models that are held at once. One more takes the place of the one held for longest. */
const maxModels = 16;
/** Ends are told in whole milliseconds. */
const roundingMs = 1;

/**
 * Owns whether jobs may be started, as far as the account of the model CLI decides: its quota and its credential. While
 * it is open no job is started. What concerns one model alone holds back that model's jobs alone.
 */
export class Breaker {
  readonly #clock: Clock;
  readonly #usual: string;
  readonly #account: Circuit;
  /** By the `circuit` of the routes. Closed ones are not kept. */
  readonly #models = new Map<string, Circuit>();
  readonly #windows: QuotaWindows;
  readonly #openings = new Map<BreakerReason, number>(breakerReasons.map((reason) => [reason, 0]));
  #listener: BreakerListener = { changed() {}, windowClosing() {} };
  readonly #suspicions: Suspicions;
  /** When a job was first refused for its credential, if none was answered since: a check that says so decides then. */
  #suspectedMs: number | null = null;
  #saysNotReady = false;

  /** `usual`: the circuit of a job that names no model. */
  constructor(clock: Clock, usual = '', clients = new SeenClients()) {
    this.#clock = clock;
    this.#suspicions = new Suspicions(clients);
    this.#usual = usual;
    this.#windows = new QuotaWindows(clock);
    this.#account = new Circuit(null, clock, (circuit) => this.#changed(circuit));
  }

  /** There is one listener. */
  listen(listener: BreakerListener): void {
    this.#listener = listener;
  }

  /** Why this job may not be started now, as `cli_error`; null where it may. */
  refusal({ request, route }: CircuitJob): RelayError | null {
    return this.#circuitsOf(route.circuit).find((circuit) => !circuit.admits(request))?.refusal ?? null;
  }

  /** A job that was not refused has been admitted. */
  admitted({ request, route }: CircuitJob): void {
    for (const circuit of this.#circuitsOf(route.circuit)) circuit.admitted(request);
  }

  /** The model answers this job. */
  served({ request, route }: CircuitJob): void {
    for (const circuit of this.#circuitsOf(route.circuit)) circuit.served(request);
  }

  /** Learns from a job's end. Returns the end as the caller is to be told it, with the time to wait. */
  ended(job: CircuitJob, end: JobEnd, hadSlot: boolean): JobEnd {
    if (hadSlot) this.#learn(job, end);
    for (const circuit of this.#circuitsOf(job.route.circuit)) circuit.left(job.request);
    return end.outcome === 'cli_error' ? this.#withRetry(job, end) : end;
  }

  /**
   * Learns from what a readiness check has found. Without an error the model CLI says that it can run jobs; returns that
   * with the error of the breaker, where it knows better: then `isHeld` is true.
   */
  checked<Verdict extends CheckedError>(verdict: Verdict): Verdict & { readonly isHeld?: true } {
    const { error, reason = 'auth' } = verdict;
    const { state } = this.#account;
    const isAuth = state.name !== 'closed' && state.reason === 'auth';
    const isSuspected = this.#suspectedMs !== null || isAuth;
    if (error !== null && reason === 'auth' && isSuspected) this.#account.refused(null, 'auth', null);
    if (error === null && this.#saysNotReady && isAuth) this.#account.tryAgain();
    this.#saysNotReady = error !== null;
    const held = error === null ? this.error : null;
    return held === null ? verdict : { ...verdict, error: held, isHeld: true };
  }

  /** The model CLI has told of its account. */
  readonly reported = (windows: readonly QuotaWindow[]): void => {
    for (const window of this.#windows.report(windows)) this.#listener.windowClosing(window);
  };

  /** Somebody who may know better asks: the next job is let through, and what the last ones showed is forgotten. */
  tryAgain(): void {
    this.#suspectedMs = null;
    this.#suspicions.clear();
    this.probe();
  }

  /** The next job is let through, wherever jobs are held back. */
  probe(): void {
    for (const circuit of this.#circuits) circuit.tryAgain();
  }

  /** Why a job that names no model is not started; null where the next one is. */
  get error(): string | null {
    return this.#circuitsOf(this.#usual).find(({ state }) => state.name === 'open')?.refusal?.message ?? null;
  }

  /** Whether jobs that name no model run as usual. */
  get isClosed(): boolean {
    return this.#circuitsOf(this.#usual).every(({ state }) => state.name === 'closed');
  }

  /** For the account, then for each model that is held. */
  get status(): readonly [CircuitStatus, ...CircuitStatus[]] {
    return [this.#account.status, ...[...this.#models.values()].map(({ status }) => status)];
  }

  get windows(): readonly QuotaWindow[] {
    return this.#windows.current;
  }

  /** By window, for the metrics. */
  get utilization(): Readonly<Record<string, number>> {
    return this.#windows.utilization;
  }

  /** 1 for each reason for which it is open somewhere. */
  get openFor(): Readonly<Record<string, number>> {
    const states = this.#circuits.map(({ state }) => state);
    const isOpen = (reason: BreakerReason) => states.some((state) => state.name === 'open' && state.reason === reason);
    return Object.fromEntries(breakerReasons.map((reason) => [reason, isOpen(reason) ? 1 : 0]));
  }

  /** By reason, since the start. */
  get openings(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#openings);
  }

  stop(): void {
    for (const circuit of this.#circuits) circuit.stop();
  }

  get #circuits(): readonly Circuit[] {
    return [this.#account, ...this.#models.values()];
  }

  #circuitsOf(model: string): readonly Circuit[] {
    const circuit = this.#models.get(model);
    return circuit === undefined ? [this.#account] : [this.#account, circuit];
  }

  #learn(job: CircuitJob, end: JobEnd): void {
    const beganMs = this.#clock.monotonicMs() - end.executionMs + roundingMs;
    if (end.outcome === 'ok') this.#answered(job, beganMs);
    else if (end.outcome !== 'cli_error') return;
    else if (end.failure.reason === 'auth') this.#unauthorized(job, end, beganMs);
    else if (end.failure.reason === 'quota') this.#exhausted(job, end, beganMs);
  }

  #answered(job: CircuitJob, beganMs: number): void {
    this.served(job); // its answer may have had no text
    if (this.#suspectedMs !== null && beganMs >= this.#suspectedMs) this.#suspectedMs = null;
    for (const model of [null, job.route.circuit]) this.#suspicions.answered(model, beganMs);
  }

  /**
   * One failure may be a token that was just renewed. A code of the account is about the account. Anything else is about
   * the model that the job names: only jobs that name none speak for the account then.
   */
  #unauthorized({ request, route }: CircuitJob, { failure }: JobFailed, beganMs: number): void {
    this.#suspectedMs ??= this.#clock.monotonicMs();
    const isCertain = failure.scope === 'account';
    const model = isCertain || route.circuit === this.#usual ? null : route.circuit;
    const lasts = this.#lasts(request, model, isCertain, beganMs) || (isCertain && this.#account.isProbe(request));
    if (lasts) this.#circuitOf(model).refused(request, 'auth', null);
  }

  /** Where no code says so, it takes a second failure, too. */
  #exhausted({ request, route }: CircuitJob, { failure }: JobFailed, beganMs: number): void {
    const { scope, resetsAt } = failure.quota ?? { scope: 'model', resetsAt: null };
    const model = scope === 'account' ? null : route.circuit;
    const lasts = failure.quota !== undefined || this.#lasts(request, model, false, beganMs);
    if (lasts) this.#circuitOf(model).refused(request, 'quota', resetsAt);
  }

  #lasts({ client }: JobRequest, model: string | null, isCertain: boolean, beganMs: number): boolean {
    return this.#suspicions.confirms(model, { client, beganMs, isCertain }, this.#clock.monotonicMs());
  }

  #circuitOf(model: string | null): Circuit {
    return model === null ? this.#account : this.#circuitOfModel(model);
  }

  #circuitOfModel(model: string): Circuit {
    const known = this.#models.get(model);
    if (known !== undefined) return known;
    const [oldest] = this.#models.keys();
    if (oldest !== undefined && this.#models.size >= maxModels) this.#forget(oldest);
    const circuit = new Circuit(model, this.#clock, () => {
      if (circuit.state.name === 'closed') this.#forget(model);
      this.#changed(circuit);
    });
    this.#models.set(model, circuit);
    return circuit;
  }

  #forget(model: string): void {
    this.#models.get(model)?.stop();
    this.#models.delete(model);
  }

  #changed({ state, status }: Circuit): void {
    if (state.name === 'open') this.#openings.set(state.reason, (this.#openings.get(state.reason) ?? 0) + 1);
    if (state.name === 'closed') this.#suspicions.forget(status.model);
    if (state.name === 'closed' && status.model === null) this.#suspectedMs = null;
    this.#listener.changed(status);
  }

  #withRetry(job: CircuitJob, end: JobFailed): JobFailed {
    const { failure } = end;
    if (failure.reason !== 'quota' && failure.reason !== 'auth') return end;
    const retryAfterSeconds = failure.retryAfterSeconds ?? this.refusal(job)?.retryAfterSeconds;
    return { ...end, failure: { ...failure, retryAfterSeconds } };
  }
}

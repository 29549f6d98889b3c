import { type Clock, type StopTimer, timestamp } from '../../shared/clock.js';
import { RelayError } from '../../shared/errors.js';
import { type BreakerReason, type BreakerState, breakerReasons } from '../../shared/health.js';
import type { JobRequest } from '../../shared/job.js';

/** What a circuit is doing. `half_open`: the first job that comes is the probe; the others wait while it is open. */
export type CircuitState =
  | { readonly name: 'closed' }
  | { readonly name: 'open'; readonly reason: BreakerReason; readonly sinceMs: number; readonly untilMs: number }
  | {
      readonly name: 'half_open';
      readonly reason: BreakerReason;
      readonly sinceMs: number;
      readonly probe: JobRequest | null;
    };

/** How a circuit stands. Times are in milliseconds since the epoch. */
export interface CircuitStatus {
  readonly state: BreakerState;
  /** The model whose jobs it holds; null for all jobs. */
  readonly model: string | null;
  readonly reason: BreakerReason | null;
  readonly since: number | null;
  /** When the next job is let through; null where it is not open. */
  readonly until: number | null;
}

/** Without a known time of reset: 30 s, doubled at each failed probe. */
const firstWaitMs = 30_000;
const maxBackoffMs = 10 * 60_000;
/** A job an hour costs little, and a CLI that reports nonsense must not close the service for longer. */
const maxWaitMs = 60 * 60_000;
/** The longest window is of a week. A reset that is further away is nonsense. */
const maxResetMs = 8 * 24 * 60 * 60_000;
/** How long a job that comes while a probe runs is asked to wait. */
const probeRetrySeconds = 5;

/** A larger change is a jump of the wall clock. */
const wobbleMs = 50;

const faults: Readonly<Record<BreakerReason, string>> = {
  quota: 'the account of the model CLI has used up its quota',
  auth: 'the credential of the model CLI is refused',
};
/** Of one model alone. */
const modelFaults: Readonly<Record<BreakerReason, string>> = {
  ...faults,
  auth: 'the account of the model CLI may not use this model',
};

/** Owns whether jobs are let through to one account, or to one model of it. */
export class Circuit {
  readonly #model: string | null;
  readonly #clock: Clock;
  readonly #onChange: (circuit: Circuit) => void;
  #state: CircuitState = { name: 'closed' };
  /** Openings since it was last closed. */
  #tries = 0;
  #stopTimer: StopTimer = () => {};
  /** How far the wall clock is ahead of the monotonic one. */
  #aheadMs = Number.NEGATIVE_INFINITY;

  /** `model` is null for the whole account. */
  constructor(model: string | null, clock: Clock, onChange: (circuit: Circuit) => void) {
    this.#model = model;
    this.#clock = clock;
    this.#onChange = onChange;
  }

  get state(): CircuitState {
    return this.#state;
  }

  get status(): CircuitStatus {
    const { name: state } = this.#state;
    const model = this.#model;
    if (this.#state.name === 'closed') return { state, model, reason: null, since: null, until: null };
    const until = this.#state.name === 'open' ? this.#epochMs(this.#state.untilMs) : null;
    return { state, model, reason: this.#state.reason, since: this.#epochMs(this.#state.sinceMs), until };
  }

  /** Why jobs are not started, as `cli_error`. */
  get refusal(): RelayError | null {
    if (this.#state.name === 'closed') return null;
    const { reason } = this.#state;
    const fault = (this.#model === null ? faults : modelFaults)[reason];
    if (this.#state.name === 'half_open') {
      const extras = { reason, retryAfterSeconds: probeRetrySeconds };
      return new RelayError('cli_error', `${fault}; a job is under way to find out whether it still is so`, extras);
    }
    const { untilMs } = this.#state;
    const retryAfterSeconds = Math.max(1, Math.ceil((untilMs - this.#clock.monotonicMs()) / 1000));
    const message = `${fault}; no job is started before ${timestamp(this.#epochMs(untilMs))}`;
    return new RelayError('cli_error', message, { reason, retryAfterSeconds });
  }

  /** Whether this job may be started now. */
  admits(request: JobRequest): boolean {
    if (this.#state.name === 'closed') return true;
    return this.#state.name === 'half_open' && (this.#state.probe === null || this.#state.probe === request);
  }

  /** A job that it admits has been admitted by all: where it is half open, this is the probe. */
  admitted(request: JobRequest): void {
    if (this.#state.name === 'half_open') this.#state = { ...this.#state, probe: request };
  }

  isProbe(request: JobRequest | null): boolean {
    return this.#state.name === 'half_open' && this.#state.probe === request;
  }

  /** The model answers this job. Others may have begun before the circuit was opened, and prove nothing. */
  served(request: JobRequest): void {
    if (!this.isProbe(request)) return;
    this.#tries = 0;
    this.#become({ name: 'closed' });
  }

  /** A job was refused; null: a check shows that it would be. `resetsAt` is in milliseconds since the epoch. */
  refused(request: JobRequest | null, reason: BreakerReason, resetsAt: number | null): void {
    if (this.#state.name !== 'closed' && !this.isProbe(request)) return;
    this.#tries++;
    const nowMs = this.#clock.monotonicMs();
    const waitMs = this.#waitMs(resetsAt);
    this.#become({ name: 'open', reason, sinceMs: nowMs, untilMs: nowMs + waitMs });
    this.#stopTimer = this.#clock.after(waitMs, () => this.tryAgain());
  }

  /** The job has ended. A probe that shows nothing leaves its place to the next job. */
  left(request: JobRequest): void {
    if (this.#state.name === 'half_open' && this.isProbe(request)) this.#state = { ...this.#state, probe: null };
  }

  /** The next job is let through. */
  tryAgain(): void {
    if (this.#state.name !== 'open') return;
    const { reason, sinceMs } = this.#state;
    this.#become({ name: 'half_open', reason, sinceMs, probe: null });
  }

  stop(): void {
    this.#stopTimer();
  }

  /** The wall clock may jump, so the time of reset becomes a time to wait at once. */
  #waitMs(resetsAt: number | null): number {
    const resetMs = resetsAt === null ? 0 : resetsAt - this.#clock.now();
    if (resetMs > 0 && resetMs <= maxResetMs) return Math.min(resetMs, maxWaitMs);
    return Math.min(firstWaitMs * 2 ** (this.#tries - 1), maxBackoffMs);
  }

  #become(state: CircuitState): void {
    this.#stopTimer();
    this.#state = state;
    this.#onChange(this);
  }

  /** Of a time of the monotonic clock, as the wall clock goes now. Without the wobble of the two it is always the same. */
  #epochMs(monotonicMs: number): number {
    const aheadMs = this.#clock.now() - this.#clock.monotonicMs();
    if (Math.abs(aheadMs - this.#aheadMs) > wobbleMs) this.#aheadMs = aheadMs;
    return Math.round(this.#aheadMs + monotonicMs);
  }
}

/** A job, which is known by its request, as far as circuits go. */
export interface CircuitJob {
  readonly request: JobRequest;
  /** `circuit`: what the account calls the model that it names; '' for none. */
  readonly route: { readonly circuit: string };
}

/** Models with a circuit at once. One more takes the place of the oldest. */
const maxModels = 16;

/**
 * Owns the circuits of one model CLI: while that of its account is open, no job is started. What concerns one model alone
 * holds back that model's jobs alone.
 */
export class Circuits {
  /** Of a job that names no model. */
  readonly usual: string;
  readonly account: Circuit;
  readonly #clock: Clock;
  readonly #onChange: (status: CircuitStatus) => void;
  /** By the `circuit` of the routes. Closed ones are removed. */
  readonly #models = new Map<string, Circuit>();
  readonly #openings = new Map<BreakerReason, number>(breakerReasons.map((reason) => [reason, 0]));

  constructor(usual: string, clock: Clock, onChange: (status: CircuitStatus) => void) {
    this.usual = usual;
    this.#clock = clock;
    this.#onChange = onChange;
    this.account = new Circuit(null, clock, (circuit) => this.#changed(circuit));
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

  /** The job has ended. */
  left({ request, route }: CircuitJob): void {
    for (const circuit of this.#circuitsOf(route.circuit)) circuit.left(request);
  }

  /** The circuit of a model; null: of the account. */
  of(model: string | null): Circuit {
    if (model === null) return this.account;
    const known = this.#models.get(model);
    if (known !== undefined) return known;
    const [oldest] = this.#models.keys();
    if (oldest !== undefined && this.#models.size >= maxModels) this.#remove(oldest);
    const circuit = new Circuit(model, this.#clock, () => {
      if (circuit.state.name === 'closed') this.#remove(model);
      this.#changed(circuit);
    });
    this.#models.set(model, circuit);
    return circuit;
  }

  /** The next job is let through by every open circuit. */
  tryAgain(): void {
    for (const circuit of this.#all) circuit.tryAgain();
  }

  /** Why a job that names no model is not started; null where the next one is. */
  get error(): string | null {
    return this.#circuitsOf(this.usual).find(({ state }) => state.name === 'open')?.refusal?.message ?? null;
  }

  /** Whether jobs that name no model run as usual. */
  get isClosed(): boolean {
    return this.#circuitsOf(this.usual).every(({ state }) => state.name === 'closed');
  }

  /** For the account, then for each model whose circuit is not closed. */
  get status(): readonly [CircuitStatus, ...CircuitStatus[]] {
    return [this.account.status, ...[...this.#models.values()].map(({ status }) => status)];
  }

  /** 1 for each reason for which one is open. */
  get openFor(): Readonly<Record<string, number>> {
    const states = this.#all.map(({ state }) => state);
    const isOpen = (reason: BreakerReason) => states.some((state) => state.name === 'open' && state.reason === reason);
    return Object.fromEntries(breakerReasons.map((reason) => [reason, isOpen(reason) ? 1 : 0]));
  }

  /** By reason, since the start. */
  get openings(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#openings);
  }

  stop(): void {
    for (const circuit of this.#all) circuit.stop();
  }

  get #all(): readonly Circuit[] {
    return [this.account, ...this.#models.values()];
  }

  #circuitsOf(model: string): readonly Circuit[] {
    const circuit = this.#models.get(model);
    return circuit === undefined ? [this.account] : [this.account, circuit];
  }

  #remove(model: string): void {
    this.#models.get(model)?.stop();
    this.#models.delete(model);
  }

  #changed({ state, status }: Circuit): void {
    if (state.name === 'open') this.#openings.set(state.reason, (this.#openings.get(state.reason) ?? 0) + 1);
    this.#onChange(status);
  }
}

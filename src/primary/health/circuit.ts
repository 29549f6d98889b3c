import { type Clock, type StopTimer, timestamp } from '../../shared/clock.js';
import { RelayError, retryAfter } from '../../shared/errors.js';
import { type BreakerReason, type BreakerState, breakerReasons } from '../../shared/health.js';
import type { JobRequest } from '../../shared/job.js';

/**
 * State of a circuit. `half_open`: an admitted job is a probe. Other jobs are refused while it runs, up to a time limit,
 * after which one more job becomes a probe. The first result of any probe decides.
 */
export type CircuitState =
  | { readonly name: 'closed' }
  | {
      readonly name: 'open';
      readonly reason: BreakerReason;
      readonly sinceMs: number;
      /** Time of the next probe. */
      readonly untilMs: number;
      /** Time when the refusal is expected to end; a long time after `untilMs` if the API has named it. */
      readonly resetMs: number;
    }
  | {
      readonly name: 'half_open';
      readonly reason: BreakerReason;
      readonly sinceMs: number;
      /** Probes that have no result yet. */
      readonly probes: readonly JobRequest[];
      /** Admission of the newest probe, monotonic. */
      readonly probeMs: number;
    };

/** Public state of a circuit. Times are in milliseconds since the epoch. */
export interface CircuitStatus {
  readonly state: BreakerState;
  /** Model whose jobs it blocks; null for all jobs. */
  readonly model: string | null;
  readonly reason: BreakerReason | null;
  readonly since: number | null;
  /** Time when the next job is admitted; null unless the circuit is open. */
  readonly until: number | null;
}

/** Wait without a known reset time, doubled at each failed probe. */
const firstWaitMs = 30_000;
const maxBackoffMs = 10 * 60_000;
/** Maximum wait. A probe per hour costs little, and a wrong report of a CLI must not block jobs for longer. */
const maxWaitMs = 60 * 60_000;
/**
 * Time for which a probe without an answer holds other jobs back. Afterwards, the next job becomes a probe, too: a job
 * may wait for long behind other jobs of its client.
 */
const longestProbeMs = 30_000;
/** Longest plausible time until a reset: the longest quota window is a week. */
const maxResetMs = 8 * 24 * 60 * 60_000;

/** Tolerated drift between the clocks. A larger change is a jump of the wall clock. */
const wobbleMs = 50;

const faults: Readonly<Record<BreakerReason, string>> = {
  quota: 'the account of the model CLI has used up its quota',
  auth: 'the credential of the model CLI is refused',
};
/** Faults of one model alone. */
const modelFaults: Readonly<Record<BreakerReason, string>> = {
  ...faults,
  auth: 'the account of the model CLI may not use this model',
};

/** Decides whether jobs are admitted to an account, or to one model of it. */
export class Circuit {
  readonly #model: string | null;
  readonly #clock: Clock;
  readonly #onChange: (circuit: Circuit) => void;
  #state: CircuitState = { name: 'closed' };
  /** Number of openings since the circuit was last closed. */
  #tries = 0;
  #stopTimer: StopTimer = () => {};
  /** Difference between wall clock and monotonic clock. */
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

  /** Error for refused jobs, with the code `cli_error`; null if the circuit is closed. */
  get refusal(): RelayError | null {
    if (this.#state.name === 'closed') return null;
    const { reason } = this.#state;
    const fault = (this.#model === null ? faults : modelFaults)[reason];
    if (this.#state.name === 'half_open') {
      const extras = { reason, retryAfterSeconds: retryAfter('trial_job') };
      return new RelayError(
        'cli_error',
        `${fault}; a trial job is running to find out whether this has changed`,
        extras,
      );
    }
    const { untilMs } = this.#state;
    const retryAfterSeconds = retryAfter('cli_blocked', untilMs - this.#clock.monotonicMs());
    const message = `${fault}; no job is started before ${timestamp(this.#epochMs(untilMs))}`;
    return new RelayError('cli_error', message, { reason, retryAfterSeconds });
  }

  /** Returns whether this job may start at the moment. */
  mayStart(request: JobRequest): boolean {
    if (this.#state.name === 'closed') return true;
    return !this.isHeldBack || this.isProbe(request);
  }

  /** Whether a further job would be refused. */
  get isHeldBack(): boolean {
    const state = this.#state;
    if (state.name !== 'half_open') return state.name === 'open';
    return state.probes.length > 0 && this.#clock.monotonicMs() - state.probeMs < longestProbeMs;
  }

  /** Records an admitted job. In a half-open circuit, this job becomes a probe. */
  recordAdmission(request: JobRequest): void {
    if (this.#state.name !== 'half_open' || this.isProbe(request)) return;
    const probes = [...this.#state.probes, request];
    this.#state = { ...this.#state, probes, probeMs: this.#clock.monotonicMs() };
  }

  isProbe(request: JobRequest | null): boolean {
    return this.#state.name === 'half_open' && request !== null && this.#state.probes.includes(request);
  }

  /**
   * Closes the circuit when the model answers a probe. Other jobs may have begun before the circuit opened, and prove
   * nothing.
   */
  recordAnswer(request: JobRequest): void {
    if (!this.isProbe(request)) return;
    this.#tries = 0;
    this.#become({ name: 'closed' });
  }

  /**
   * Opens the circuit after a refused job; with `request` null, after a check that predicts a refusal. `resetsAt` is in
   * milliseconds since the epoch.
   */
  recordRefusal(request: JobRequest | null, reason: BreakerReason, resetsAt: number | null): void {
    if (!this.#isDecidedBy(request)) return;
    this.#tries++;
    const nowMs = this.#clock.monotonicMs();
    const resetInMs = this.#resetInMs(resetsAt);
    const waitMs = Math.min(resetInMs, maxWaitMs);
    this.#become({ name: 'open', reason, sinceMs: nowMs, untilMs: nowMs + waitMs, resetMs: nowMs + resetInMs });
    this.#stopTimer = this.#clock.after(waitMs, () => this.tryAgain());
  }

  /** Whether a refusal decides: of any job in a closed circuit, of a probe, or of a check while no probe runs. */
  #isDecidedBy(request: JobRequest | null): boolean {
    if (this.#state.name === 'closed' || this.isProbe(request)) return true;
    return request === null && this.#state.name === 'half_open' && this.#state.probes.length === 0;
  }

  /** Records the end of a job. If the last probe ended without a result, the next job becomes a probe. */
  recordEnd(request: JobRequest): void {
    if (this.#state.name !== 'half_open') return;
    this.#state = { ...this.#state, probes: this.#state.probes.filter((probe) => probe !== request) };
  }

  /** Lets the next job through as a probe. */
  tryAgain(): void {
    if (this.#state.name !== 'open') return;
    const { reason, sinceMs } = this.#state;
    this.#become({ name: 'half_open', reason, sinceMs, probes: [], probeMs: 0 });
  }

  stopTrials(): void {
    this.#stopTimer();
  }

  /** Milliseconds until the refusal is expected to end; 0 unless the circuit is open. */
  get resetInMs(): number {
    return this.#state.name === 'open' ? Math.max(0, this.#state.resetMs - this.#clock.monotonicMs()) : 0;
  }

  /** Returns the milliseconds until a reset, computed at once, because the wall clock may jump later. */
  #resetInMs(resetsAt: number | null): number {
    const resetMs = resetsAt === null ? 0 : resetsAt - this.#clock.now();
    if (resetMs > 0 && resetMs <= maxResetMs) return resetMs;
    return Math.min(firstWaitMs * 2 ** (this.#tries - 1), maxBackoffMs);
  }

  #become(state: CircuitState): void {
    this.#stopTimer();
    this.#state = state;
    this.#onChange(this);
  }

  /**
   * Converts a monotonic time to milliseconds since the epoch. Small drift between the clocks is ignored, so that
   * repeated conversions give the same result.
   */
  #epochMs(monotonicMs: number): number {
    const aheadMs = this.#clock.now() - this.#clock.monotonicMs();
    if (Math.abs(aheadMs - this.#aheadMs) > wobbleMs) this.#aheadMs = aheadMs;
    return Math.round(this.#aheadMs + monotonicMs);
  }
}

/** Job as circuits use it, identified by its request. */
export interface CircuitJob {
  readonly request: JobRequest;
  /** `circuit`: name of the model for the account; '' if the job names no model. */
  readonly route: { readonly circuit: string };
}

/** Maximum number of models with a circuit; the oldest is evicted. */
const maxModels = 16;

/**
 * Owns the circuits of one model CLI. While the account circuit is open, no job starts. The circuit of a model blocks
 * only jobs for this model.
 */
export class Circuits {
  /** Circuit of a job that names no model. */
  readonly defaultCircuit: string;
  readonly account: Circuit;
  readonly #clock: Clock;
  readonly #onChange: (status: CircuitStatus) => void;
  /** Circuits of models, by the `circuit` of the routes. Closed ones are removed. */
  readonly #models = new Map<string, Circuit>();
  readonly #openings = new Map<BreakerReason, number>(breakerReasons.map((reason) => [reason, 0]));

  constructor(usual: string, clock: Clock, onChange: (status: CircuitStatus) => void) {
    this.defaultCircuit = usual;
    this.#clock = clock;
    this.#onChange = onChange;
    this.account = new Circuit(null, clock, (circuit) => this.#onCircuitChange(circuit));
  }

  /** Returns why this job may not start at the moment, as `cli_error`; null if it may start. */
  refusalOf({ request, route }: CircuitJob): RelayError | null {
    return this.#circuitsOf(route.circuit).find((circuit) => !circuit.mayStart(request))?.refusal ?? null;
  }

  /** Milliseconds until refusals of jobs for this model are expected to end; 0 if none is refused. */
  resetInMs(circuit: string): number {
    return Math.max(...this.#circuitsOf(circuit).map(({ resetInMs }) => resetInMs));
  }

  /** Whether a further job for this model would be refused. */
  isBlocked(circuit: string): boolean {
    return this.#circuitsOf(circuit).some(({ isHeldBack }) => isHeldBack);
  }

  /** Records an admitted job. */
  recordAdmission({ request, route }: CircuitJob): void {
    for (const circuit of this.#circuitsOf(route.circuit)) circuit.recordAdmission(request);
  }

  /** Records that the model answers this job. */
  recordAnswer({ request, route }: CircuitJob): void {
    for (const circuit of this.#circuitsOf(route.circuit)) circuit.recordAnswer(request);
  }

  /** Records the end of a job. */
  recordEnd({ request, route }: CircuitJob): void {
    for (const circuit of this.#circuitsOf(route.circuit)) circuit.recordEnd(request);
  }

  /** Returns the circuit of a model; with null, of the account. */
  circuitOf(model: string | null): Circuit {
    if (model === null) return this.account;
    const known = this.#models.get(model);
    if (known !== undefined) return known;
    const [oldest] = this.#models.keys();
    if (oldest !== undefined && this.#models.size >= maxModels) this.#remove(oldest);
    const circuit = new Circuit(model, this.#clock, () => {
      if (circuit.state.name === 'closed') this.#remove(model);
      this.#onCircuitChange(circuit);
    });
    this.#models.set(model, circuit);
    return circuit;
  }

  /** Lets the next job through at every open circuit. */
  tryAgain(): void {
    for (const circuit of this.#all) circuit.tryAgain();
  }

  /** Reason why jobs that name no model are blocked; null if they are not. */
  get error(): string | null {
    return this.#circuitsOf(this.defaultCircuit).find(({ state }) => state.name === 'open')?.refusal?.message ?? null;
  }

  /** Whether jobs that name no model are admitted without a probe. */
  get isClosed(): boolean {
    return this.#circuitsOf(this.defaultCircuit).every(({ state }) => state.name === 'closed');
  }

  /** Status of the account, then of each model whose circuit is not closed. */
  get status(): readonly [CircuitStatus, ...CircuitStatus[]] {
    return [this.account.status, ...[...this.#models.values()].map(({ status }) => status)];
  }

  /** For each reason, 1 if any circuit is open for it, else 0. */
  get openFor(): Readonly<Record<string, number>> {
    const states = this.#all.map(({ state }) => state);
    const isOpen = (reason: BreakerReason) => states.some((state) => state.name === 'open' && state.reason === reason);
    return Object.fromEntries(breakerReasons.map((reason) => [reason, isOpen(reason) ? 1 : 0]));
  }

  /** Number of openings by reason since the start. */
  get openings(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#openings);
  }

  stopTrials(): void {
    for (const circuit of this.#all) circuit.stopTrials();
  }

  get #all(): readonly Circuit[] {
    return [this.account, ...this.#models.values()];
  }

  #circuitsOf(model: string): readonly Circuit[] {
    const circuit = this.#models.get(model);
    return circuit === undefined ? [this.account] : [this.account, circuit];
  }

  #remove(model: string): void {
    this.#models.get(model)?.stopTrials();
    this.#models.delete(model);
  }

  #onCircuitChange({ state, status }: Circuit): void {
    if (state.name === 'open') this.#openings.set(state.reason, (this.#openings.get(state.reason) ?? 0) + 1);
    this.#onChange(status);
  }
}

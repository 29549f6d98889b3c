import type { Clock } from '../../shared/clock.js';
import type { RelayError } from '../../shared/errors.js';
import { type BreakerReason, breakerReasons } from '../../shared/health.js';
import type { JobRequest } from '../../shared/job.js';
import { Circuit, type CircuitStatus } from './circuit.js';

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

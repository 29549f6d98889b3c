import { withLimit } from '../../shared/async.js';
import type { Clock } from '../../shared/clock.js';
import { retryAfter, shuttingDown } from '../../shared/errors.js';
import type { Logger } from '../../shared/log/logger.js';
import { type Phase, type ServiceExit, serviceExits } from '../../shared/phase.js';

/** Steps of the shutdown, in this order, and the effects of a phase. */
export interface ShutdownSteps {
  /** Resolves when no job runs or waits. */
  idle(): Promise<void>;
  counts(): { readonly running: number; readonly queued: number };
  /** Ends all open jobs with this reason. */
  cutAll(reason: Error): void;
  /**
   * Makes all workers stop accepting connections. Resolves when every worker has finished its open requests and has
   * exited.
   */
  retireWorkers(): Promise<void>;
  /** Ends all processes of the model CLIs, and prevents new ones. Resolves when none is left. */
  endProcesses(): Promise<void>;
  /**
   * Stops the workers. Resolves when every worker has exited, with whether all answers were sent. May be called again
   * with a shorter limit.
   */
  stopWorkers(limitMs: number): Promise<boolean>;
  /** Called with each new phase. */
  onPhase(phase: Phase): void;
  /** Called once, as the last step. */
  exit(code: ServiceExit): void;
}

/** Time limit for jobs that were cut to end their processes. */
const cutLimitMs = 15_000;
/** Minimum time for sending the last answers. A longer rest of the drain time takes precedence. */
const minSendMs = 2000;
/**
 * Time within which a second identical signal is ignored: at one Ctrl-C, npm also forwards the signal that the terminal
 * sent to the whole process group.
 */
const echoMs = 500;

const nextPhases: Readonly<Record<Phase, readonly Phase[]>> = {
  starting: ['ready', 'draining'],
  ready: ['draining'],
  draining: ['stopped'],
  stopped: [],
};

/** Owns the phase of the service, and the drain. */
export class Supervisor {
  readonly #drainMs: number;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #steps: ShutdownSteps;
  #phase: Phase = 'starting';
  #hurry: () => void = () => {};
  #firstSignal = '';
  /** Monotonic start of the hand-over or the drain; null before. */
  #endingSinceMs: number | null = null;
  #drainEndsAt: number | null = null;
  /** Numbers of jobs that were cut; null before. */
  #cutJobs: ReturnType<ShutdownSteps['counts']> | null = null;

  constructor(drainMs: number, clock: Clock, log: Logger, steps: ShutdownSteps) {
    this.#drainMs = drainMs;
    this.#clock = clock;
    this.#log = log;
    this.#steps = steps;
  }

  get phase(): Phase {
    return this.#phase;
  }

  /** Deadline of the drain, in milliseconds since the epoch; null before the drain. */
  get drainEndsAt(): number | null {
    return this.#drainEndsAt;
  }

  /** Remaining seconds of the drain, for refused clients: an integer from 1 to 300. */
  get drainSecondsLeft(): number {
    return retryAfter('drain', this.#cutJobs !== null ? 0 : this.#drainLeftMs());
  }

  /** Called when a worker listens. Returns whether it is the first one. */
  becomeReady(): boolean {
    return this.#phase === 'starting' && this.#become('ready');
  }

  /**
   * Hands over to a successor at the same addresses, where new connections wait for it. The workers finish all open
   * connections first, including new requests on them, and no client is refused. Another signal begins the drain.
   */
  async handOver(signal: string): Promise<void> {
    if (this.#phase !== 'ready' || this.#endingSinceMs !== null) return this.terminate(signal);
    this.#endingSinceMs = this.#clock.monotonicMs();
    this.#log.info('handing_over', { signal, ...this.#steps.counts() });
    await withLimit(this.#steps.retireWorkers(), this.#drainMs, this.#clock);
    if (this.#phase === 'ready') await this.terminate(signal);
  }

  /**
   * Drains and stops the service: new jobs are refused, and open ones finish. A second signal cuts the remaining jobs.
   */
  async terminate(signal: string): Promise<void> {
    if (this.#phase === 'draining' && !this.#isEchoOf(signal)) return this.#hurry();
    if (!this.#become('draining')) return;
    this.#firstSignal = signal;
    this.#log.info('shutdown_start', { signal, ...this.#steps.counts() });
    const isFinished = await this.#drain();
    if (!isFinished) await this.#cut();
    await this.#stop(isFinished ? serviceExits.clean : serviceExits.cut);
  }

  /** Cuts all jobs and exits with this code, because the service cannot serve. */
  async fail(code: ServiceExit): Promise<void> {
    if (!this.#become('draining')) return;
    await this.#cut();
    await this.#stop(code);
  }

  /** Changes the phase; no other code does. Returns false if the transition is not allowed. */
  #become(phase: Phase): boolean {
    if (!nextPhases[this.#phase].includes(phase)) return false;
    this.#phase = phase;
    if (phase === 'draining') this.#beginDrain();
    this.#steps.onPhase(phase);
    return true;
  }

  #beginDrain(): void {
    this.#endingSinceMs ??= this.#clock.monotonicMs();
    this.#drainEndsAt = this.#clock.now() + this.#drainLeftMs();
  }

  #isEchoOf(signal: string): boolean {
    return signal === this.#firstSignal && this.#drainedMs() < echoMs;
  }

  #drainedMs(): number {
    return this.#endingSinceMs === null ? 0 : this.#clock.monotonicMs() - this.#endingSinceMs;
  }

  #drainLeftMs(): number {
    return Math.max(0, this.#drainMs - this.#drainedMs());
  }

  /** Resolves with whether all jobs finished before the deadline and before a second signal. */
  #drain(): Promise<boolean> {
    const hurried = new Promise<boolean>((resolve) => {
      this.#hurry = () => resolve(false);
    });
    const drained = Promise.race([this.#steps.idle().then(() => true), hurried]);
    return withLimit(drained, this.#drainLeftMs(), this.#clock, () => false);
  }

  async #cut(): Promise<void> {
    this.#cutJobs = this.#steps.counts();
    this.#steps.cutAll(shuttingDown());
    await withLimit(this.#steps.idle(), cutLimitMs, this.#clock);
  }

  async #stop(code: ServiceExit): Promise<void> {
    let isHurried = false;
    this.#hurry = () => {
      isHurried = true;
    };
    await this.#steps.endProcesses();
    // The workers stop last, so that every request gets an answer instead of a refused connection.
    const isAllSent = await this.#send(isHurried);
    this.#become('stopped');
    this.#end(code === serviceExits.clean && !isAllSent ? serviceExits.cut : code);
  }

  #send(isHurried: boolean): Promise<boolean> {
    this.#hurry = () => void this.#steps.stopWorkers(0);
    return this.#steps.stopWorkers(isHurried ? 0 : Math.max(minSendMs, this.#drainLeftMs()));
  }

  #end(code: ServiceExit): void {
    if (code === serviceExits.cut) this.#log.error('shutdown_timeout', this.#cutJobs ?? this.#steps.counts());
    else this.#log.info('shutdown_complete', this.#steps.counts());
    this.#steps.exit(code);
  }
}

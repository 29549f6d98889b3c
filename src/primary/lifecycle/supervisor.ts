import { type Clock, delay } from '../../shared/clock.js';
import { retrySeconds, shuttingDown } from '../../shared/errors.js';
import type { Logger } from '../../shared/log/logger.js';
import { type Phase, type ServiceExit, serviceExits } from '../../shared/phase.js';

/** What the supervisor stops, in this order, and what follows from a phase. */
export interface ShutdownSteps {
  /** Resolves when no job runs or waits. */
  idle(): Promise<void>;
  counts(): { readonly running: number; readonly queued: number };
  /** Ends every job that runs or waits, for this reason. */
  cutAll(reason: Error): void;
  /** No worker takes a new connection any more. Resolves when every one has answered what it has, and has exited. */
  retireWorkers(): Promise<void>;
  /** Resolves when no process of the model CLI is left. Nothing more is started. */
  endProcesses(): Promise<void>;
  /** Resolves when every worker has exited, with whether all answers were sent. May be called again, for less time. */
  stopWorkers(limitMs: number): Promise<boolean>;
  /** Called with each new phase. */
  entered(phase: Phase): void;
  /** Called once, as the very last step. */
  exit(code: ServiceExit): void;
}

/** Work that was cut gets this long to end its processes. */
const cutLimitMs = 15_000;
/** The last answers get what is left of the drain time to reach their clients, and at least this long. */
const minSendMs = 2000;
/** One Ctrl-C may arrive twice within this time: npm passes on what the terminal has sent to the whole group. */
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
  /** Since when old work is finished, also before the drain. */
  #endingSinceMs: number | null = null;
  #drainEndsAt: number | null = null;
  /** The jobs that were cut; null until then. */
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

  /** Until when a drain may last, milliseconds since the epoch; null before it. */
  get drainEndsAt(): number | null {
    return this.#drainEndsAt;
  }

  /** The rest of the drain, for clients that are refused in it: whole seconds, between 1 and 300. */
  get drainSecondsLeft(): number {
    return retrySeconds(this.#cutJobs !== null ? 0 : this.#drainLeftMs());
  }

  /** A worker listens. Returns whether it is the first one. */
  becomeReady(): boolean {
    return this.#phase === 'starting' && this.#become('ready');
  }

  /**
   * A successor is about to start at the same addresses, where new connections wait for it. So the workers finish what is
   * open first, with new requests on open connections, and nobody is refused. A further signal begins the drain.
   */
  async handOver(signal: string): Promise<void> {
    if (this.#phase !== 'ready' || this.#endingSinceMs !== null) return this.terminate(signal);
    this.#endingSinceMs = this.#clock.monotonicMs();
    this.#log.info('handing_over', { signal, ...this.#steps.counts() });
    await Promise.race([this.#steps.retireWorkers(), delay(this.#clock, this.#drainMs)]);
    if (this.#phase === 'ready') await this.terminate(signal);
  }

  /** At the first signal new work is refused and old work is finished. At the second, what is left is cut at once. */
  async terminate(signal: string): Promise<void> {
    if (this.#phase === 'draining' && !this.#isEchoOf(signal)) return this.#hurry();
    if (!this.#become('draining')) return;
    this.#firstSignal = signal;
    this.#log.info('shutdown_start', { signal, ...this.#steps.counts() });
    const isFinished = await this.#drain();
    if (!isFinished) await this.#cut();
    await this.#stop(isFinished ? serviceExits.clean : serviceExits.cut);
  }

  /** Nothing can be served: all work is cut, and the process exits with this code. */
  async fail(code: ServiceExit): Promise<void> {
    if (!this.#become('draining')) return;
    await this.#cut();
    await this.#stop(code);
  }

  /** The only place where the phase changes. Returns false where it can't become this one from where it is. */
  #become(phase: Phase): boolean {
    if (!nextPhases[this.#phase].includes(phase)) return false;
    this.#phase = phase;
    if (phase === 'draining') this.#beginDrain();
    this.#steps.entered(phase);
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

  /** Returns whether all work came to its end by itself. */
  #drain(): Promise<boolean> {
    const hurried = new Promise<boolean>((resolve) => {
      this.#hurry = () => resolve(false);
    });
    const timedOut = delay(this.#clock, this.#drainLeftMs()).then(() => false);
    return Promise.race([this.#steps.idle().then(() => true), timedOut, hurried]);
  }

  async #cut(): Promise<void> {
    this.#cutJobs = this.#steps.counts();
    this.#steps.cutAll(shuttingDown());
    await Promise.race([this.#steps.idle(), delay(this.#clock, cutLimitMs)]);
  }

  async #stop(code: ServiceExit): Promise<void> {
    let isHurried = false;
    this.#hurry = () => {
      isHurried = true;
    };
    await this.#steps.endProcesses();
    // The workers go last: until then every request gets an answer instead of a refused connection.
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

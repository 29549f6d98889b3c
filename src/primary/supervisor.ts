import { type Clock, delay } from '../shared/clock.js';
import { shuttingDown } from '../shared/errors.js';
import { type ServiceExit, serviceExits } from '../shared/exit-codes.js';
import type { Logger } from '../shared/logger.js';
import type { Phase } from '../shared/phase.js';

/** What the supervisor brings to an end, in this order. */
export interface Charges {
  /** Tells the workers. */
  announce(phase: Phase): void;
  /** Resolves when no job runs or waits. */
  idle(): Promise<void>;
  counts(): { readonly running: number; readonly queued: number };
  cutAll(reason: Error): void;
  /** Resolves when no process that was started for the model CLI is left; nothing more is started. */
  endProcesses(): Promise<void>;
  /**
   * Resolves when every worker has exited, after `limitMs` or a little more: with whether every answer had been sent.
   * May be called again, for less time.
   */
  stopWorkers(limitMs: number): Promise<boolean>;
}

/** Work that was cut is given this long to end its process trees. */
const cutLimitMs = 15_000;
/** The last answers have what is left of the drain to reach their clients, and this long in any case. */
const minSendMs = 2000;
/** One Ctrl-C may come twice within this: npm hands on what the terminal has sent to the whole group. */
const echoMs = 500;

/** Owns the phase of the service: starting, ready, draining, stopped; and what each step means. */
export class Supervisor {
  readonly #charges: Charges;
  readonly #drainMs: number;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #exit: (code: ServiceExit) => void;
  #phase: Phase = 'starting';
  #hurry: () => void = () => {};
  #firstSignal = '';
  #drainingSinceMs = 0;

  /** `exit` is called once, as the very last thing. */
  constructor(charges: Charges, drainMs: number, clock: Clock, log: Logger, exit: (code: ServiceExit) => void) {
    this.#charges = charges;
    this.#drainMs = drainMs;
    this.#clock = clock;
    this.#log = log;
    this.#exit = exit;
  }

  get phase(): Phase {
    return this.#phase;
  }

  /** Returns whether this was news. */
  becomeReady(): boolean {
    if (this.#phase !== 'starting') return false;
    this.#phase = 'ready';
    this.#charges.announce('ready');
    return true;
  }

  /** First signal: new work is refused, old work is finished. Second signal: what is left is cut at once. */
  async terminate(signal: string): Promise<void> {
    if (this.#phase === 'stopped') return;
    if (this.#phase === 'draining') return this.#isEchoOf(signal) ? undefined : this.#hurry();
    this.#beginDrain(signal);
    this.#log.info('shutdown_start', { signal, ...this.#charges.counts() });
    const finished = await this.#drain();
    if (!finished) await this.#cut();
    await this.#stop(finished ? serviceExits.clean : serviceExits.cut);
  }

  /** Nothing can be served: all work is cut, and the process exits with this code. */
  async fail(code: ServiceExit): Promise<void> {
    if (this.#phase === 'draining' || this.#phase === 'stopped') return;
    this.#phase = 'draining';
    await this.#cut();
    await this.#stop(code);
  }

  #beginDrain(signal: string): void {
    this.#firstSignal = signal;
    this.#phase = 'draining';
    this.#drainingSinceMs = this.#clock.monotonicMs();
    this.#charges.announce('draining');
  }

  #isEchoOf(signal: string): boolean {
    return signal === this.#firstSignal && this.#hasDrainedMs() < echoMs;
  }

  #hasDrainedMs(): number {
    return this.#clock.monotonicMs() - this.#drainingSinceMs;
  }

  /** Returns whether all work came to its end by itself. */
  #drain(): Promise<boolean> {
    const hurried = new Promise<boolean>((resolve) => {
      this.#hurry = () => resolve(false);
    });
    const timedOut = delay(this.#clock, this.#drainMs).then(() => false);
    return Promise.race([this.#charges.idle().then(() => true), timedOut, hurried]);
  }

  async #cut(): Promise<void> {
    this.#charges.cutAll(shuttingDown());
    await Promise.race([this.#charges.idle(), delay(this.#clock, cutLimitMs)]);
  }

  async #stop(code: ServiceExit): Promise<void> {
    let isHurried = false;
    this.#hurry = () => {
      isHurried = true;
    };
    await this.#charges.endProcesses();
    // Last: until here whoever comes gets an answer, not a refused connection.
    const allSent = await this.#send(isHurried);
    this.#phase = 'stopped';
    return this.#end(code === serviceExits.clean && !allSent ? serviceExits.cut : code);
  }

  #send(isHurried: boolean): Promise<boolean> {
    this.#hurry = () => void this.#charges.stopWorkers(0);
    const leftMs = this.#drainMs - this.#hasDrainedMs();
    return this.#charges.stopWorkers(isHurried ? 0 : Math.max(minSendMs, leftMs));
  }

  #end(code: ServiceExit): void {
    if (code === serviceExits.cut) this.#log.error('shutdown_timeout', this.#charges.counts());
    else this.#log.info('shutdown_complete', this.#charges.counts());
    this.#exit(code);
  }
}

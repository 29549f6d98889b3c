import { holderOf } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import type { SeenClients } from '../limits/seen-clients.js';

const maxFailures = 3;
/** Where nobody sends jobs to a CLI that is not ready, none of them could show that it is well again. */
const quietMs = 5 * 60_000;

/**
 * Owns how many jobs in a row have failed for a fault of the model CLI. From the third on it is not ready, until one is
 * answered. After five minutes without another failure, or a forced check, the next job alone decides. The jobs of one
 * client alone show nothing where there are others: its own requests may be what makes them fail.
 */
export class FailureStreak {
  readonly #clock: Clock;
  readonly #clients: SeenClients;
  #count = 0;
  /** Whose job failed first. */
  #first: string | null = null;
  /** A job of another client has failed too, or one failed whatever it asked for. */
  #isOfMany = false;
  #lastClass = '';
  #failedMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, clients: SeenClients) {
    this.#clock = clock;
    this.#clients = clients;
  }

  /** Why the CLI is not ready; null where it is, as far as jobs have shown. */
  get fault(): string | null {
    const isRecent = this.#clock.monotonicMs() - this.#failedMs < quietMs;
    if (this.#count < maxFailures || !isRecent || !this.#isBelieved) return null;
    return `${this.#count} jobs in a row have failed, the last one with ${this.#lastClass}: it is ready again when one is answered`;
  }

  /**
   * `failureClass` is a word of ours, never the model's; `client` is null for a failure that no request can cause. Returns
   * whether that makes the CLI not ready.
   */
  failed(failureClass: string, client: string | null): boolean {
    const wasFailing = this.fault !== null;
    this.#first ??= client;
    this.#isOfMany ||= client === null || (this.#first !== null && holderOf(client) !== holderOf(this.#first));
    this.#count++;
    this.#lastClass = failureClass;
    this.#failedMs = this.#clock.monotonicMs();
    return !wasFailing && this.fault !== null;
  }

  answered(): void {
    this.#count = 0;
    this.#first = null;
    this.#isOfMany = false;
  }

  get #isBelieved(): boolean {
    return this.#isOfMany || this.#first === null || this.#clients.mayAccuse(this.#first);
  }

  /** Somebody says that it is well again. */
  excuse(): void {
    this.#failedMs = Number.NEGATIVE_INFINITY;
  }
}

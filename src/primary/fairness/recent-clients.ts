import type { Clock } from '../../shared/clock.js';

/** A client stays active for ten minutes after its last request. */
const activeMs = 600_000;

/** Owns the list of active clients without a waiting job. At most `maxClients` are remembered, the most recent ones. */
export class RecentClients {
  readonly #clock: Clock;
  readonly #maxClients: number;
  /** Time of the last request by client, monotonic; in order of time. */
  readonly #requestMs = new Map<string, number>();

  constructor(maxClients: number, clock: Clock) {
    this.#maxClients = maxClients;
    this.#clock = clock;
  }

  /** Adds a client, which is active from now on. */
  add(client: string): void {
    this.#requestMs.delete(client);
    this.#requestMs.set(client, this.#clock.monotonicMs());
    const [oldest] = this.#requestMs.keys();
    if (this.#requestMs.size > this.#maxClients && oldest !== undefined) this.#requestMs.delete(oldest);
  }

  remove(client: string): void {
    this.#requestMs.delete(client);
  }

  /** Returns the number of active clients without a waiting job, except this one. */
  countOthers(client: string): number {
    const nowMs = this.#clock.monotonicMs();
    for (const [each, requestMs] of this.#requestMs) {
      if (nowMs - requestMs < activeMs) break;
      this.#requestMs.delete(each);
    }
    return this.#requestMs.size - (this.#requestMs.has(client) ? 1 : 0);
  }
}

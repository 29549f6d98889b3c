import { setNewest } from '../../../shared/bounded-map.js';
import type { Clock } from '../../../shared/clock.js';

const maxFailures = 3;
const pauseMs = 3_600_000;
/** Clients whose failures are remembered. */
const maxClients = 1000;

interface Failures {
  readonly count: number;
  /** Time of the last one, monotonic. */
  readonly atMs: number;
}

/**
 * Failed renewals of a CLI by client. After three in a row, no process is renewed for this client for an hour, because
 * each attempt may delay the end of a job by a second. Other clients are unaffected, since the reason may be what this
 * one asks.
 */
export class RenewalTrust {
  readonly #clock: Clock;
  /** The client that failed last is the newest entry. */
  readonly #failures = new Map<string, Failures>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  isPausedFor(client: string): boolean {
    const { count = 0, atMs = 0 } = this.#failures.get(client) ?? {};
    return count >= maxFailures && this.#clock.monotonicMs() < atMs + pauseMs;
  }

  /** Records whether a process of the client was renewed. Returns whether a pause begins. */
  record(client: string, isProven: boolean): boolean {
    if (isProven) {
      this.#failures.delete(client);
      return false;
    }
    const wasPaused = this.isPausedFor(client);
    const count = (this.#failures.get(client)?.count ?? 0) + 1;
    setNewest(this.#failures, client, { count, atMs: this.#clock.monotonicMs() }, maxClients);
    return count >= maxFailures && !wasPaused;
  }
}

import { setNewest } from '../../../shared/bounded-map.js';
import type { ClientText } from '../../../shared/client.js';
import type { Clock } from '../../../shared/clock.js';
import type { ContextChange, RenewalFault } from '../../../shared/health.js';
import type { Proof } from '../process/renewal.js';

const maxFailures = 3;
const pauseMs = 3_600_000;
/** Clients whose failures are remembered. */
const maxClients = 1000;

/** Fault while memory is short: processes end after their job instead of being renewed. */
export const shortOfMemory: RenewalFault = {
  ...{ kind: 'renewal', reason: 'memory', failingClients: 0, pausedClients: 0, until: null },
};

interface Failures {
  readonly count: number;
  readonly reason: Exclude<Proof, 'proven'>;
  /** Time of the last one, monotonic. */
  readonly atMs: number;
  /** Time of the last one, milliseconds since the epoch. */
  readonly at: number;
}

/**
 * Failed renewals, or failed rewindings, of a CLI by client. After three in a row, none is attempted for this client for
 * an hour, because each attempt may delay a job by a second. Other clients are unaffected, since the reason may be what
 * this one asks.
 */
export class RenewalTrust {
  readonly #kind: ContextChange;
  readonly #clock: Clock;
  readonly #onPause: (client: ClientText, kind: ContextChange) => void;
  /** The client that failed last is the newest entry. */
  readonly #failures = new Map<string, Failures>();

  /** `onPause` is called when a pause begins for a client. */
  constructor(
    kind: ContextChange,
    clock: Clock,
    onPause: (client: ClientText, kind: ContextChange) => void = () => {},
  ) {
    this.#kind = kind;
    this.#clock = clock;
    this.#onPause = onPause;
  }

  isPausedFor(client: ClientText): boolean {
    const failures = this.#failures.get(client);
    return failures !== undefined && failures.count >= maxFailures && this.#isRecent(failures);
  }

  /** Records whether a process of the client was renewed or rewound. */
  record(client: ClientText, proof: Proof): void {
    if (proof === 'proven') return void this.#failures.delete(client);
    const wasPaused = this.isPausedFor(client);
    const count = (this.#failures.get(client)?.count ?? 0) + 1;
    const failures = { count, reason: proof, atMs: this.#clock.monotonicMs(), at: this.#clock.now() };
    setNewest(this.#failures, client, failures, maxClients);
    if (count >= maxFailures && !wasPaused) this.#onPause(client, this.#kind);
  }

  /** Failures of the last hour; null if there are none. */
  get fault(): RenewalFault | null {
    const failing = [...this.#failures.values()].filter((failures) => this.#isRecent(failures));
    const last = failing.at(-1);
    if (last === undefined) return null;
    const paused = failing.filter(({ count }) => count >= maxFailures);
    const until = paused.length === 0 ? null : Math.max(...paused.map(({ at }) => at)) + pauseMs;
    const counts = { failingClients: failing.length, pausedClients: paused.length };
    return { kind: this.#kind, reason: last.reason, ...counts, until };
  }

  #isRecent({ atMs }: Failures): boolean {
    return this.#clock.monotonicMs() < atMs + pauseMs;
  }
}

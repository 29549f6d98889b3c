import type { Clock } from '../../shared/clock.js';

const hourMs = 3_600_000;
/** Those that were told first are forgotten first. */
const maxClients = 10_000;

/** Owns when something was told last of each client, so that it is told once an hour. */
export class Hourly {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  /** In the order of these times. */
  readonly #toldMs = new Map<string, number>();

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  /** Whether to tell it now; then it counts as told. */
  isDue(client: string): boolean {
    const now = this.#clock.monotonicMs();
    const toldMs = this.#toldMs.get(client);
    if (toldMs !== undefined && now - toldMs < hourMs) return false;
    this.#toldMs.delete(client);
    this.#toldMs.set(client, now);
    const [first] = this.#toldMs.keys();
    if (this.#toldMs.size > maxClients && first !== undefined) this.#toldMs.delete(first);
    return true;
  }
}

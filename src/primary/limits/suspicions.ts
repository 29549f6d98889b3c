import type { SeenClients } from './seen-clients.js';

interface Failure {
  readonly client: string;
  /** When its job began, monotonic. */
  readonly beganMs: number;
  /** A code says so. Else what the request said or asked for may be the cause. */
  readonly isCertain: boolean;
}

interface Suspicion extends Failure {
  readonly sinceMs: number;
}

/** Bogus names of models must not fill memory. */
const maxModels = 64;

/**
 * Owns what speaks against the account, or against one model of it, and does not suffice yet to hold back its jobs: a
 * failure counts if another one has gone before it.
 */
export class Suspicions {
  readonly #clients: SeenClients;
  /** By model; null for the account. */
  readonly #byModel = new Map<string | null, Suspicion>();

  constructor(clients: SeenClients) {
    this.#clients = clients;
  }

  /**
   * Whether a failure is the second in a row: its job began after the first one had failed. Where no code says so, the
   * two must be of two clients, if there are two.
   */
  confirms(model: string | null, failure: Failure, nowMs: number): boolean {
    const first = this.#byModel.get(model);
    if (first !== undefined && failure.beganMs >= first.sinceMs && this.#isConfirmed(first, failure)) return true;
    if (first === undefined || (failure.isCertain && !first.isCertain))
      this.#note(model, { ...failure, sinceMs: nowMs });
    return false;
  }

  /** A job of this model that began then was answered. */
  answered(model: string | null, beganMs: number): void {
    const first = this.#byModel.get(model);
    if (first !== undefined && beganMs >= first.sinceMs) this.#byModel.delete(model);
  }

  forget(model: string | null): void {
    this.#byModel.delete(model);
  }

  clear(): void {
    this.#byModel.clear();
  }

  #isConfirmed(first: Suspicion, second: Failure): boolean {
    return second.isCertain ? first.isCertain : this.#clients.mayAccuse(first.client, second.client);
  }

  #note(model: string | null, suspicion: Suspicion): void {
    this.#byModel.set(model, suspicion);
    const [oldest] = [...this.#byModel.keys()].filter((each) => each !== null);
    if (this.#byModel.size > maxModels && oldest !== undefined) this.#byModel.delete(oldest);
  }
}

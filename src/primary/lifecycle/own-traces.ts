import { type Clock, delay } from '../../shared/clock.js';
import { removeTracesOf, type TracePlaces } from '../../shared/process/leftovers.js';
import { instanceOfProcess } from '../../shared/process/proc.js';

/** A disk may not answer; the next start removes what is left. */
const removeLimitMs = 1000;

/** Owns what this process makes for itself on the host: its folders and its cgroup. */
export class OwnTraces {
  readonly #clock: Clock;
  #places: TracePlaces | null = null;
  #making: Promise<unknown> = Promise.resolve();
  #removing: Promise<void> | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `make`, which makes all of it in these places. Never resolves once the process is about to end. */
  make<T>(places: TracePlaces, make: () => Promise<T>): Promise<T> {
    if (this.#removing !== null) return new Promise(() => {});
    this.#places = places;
    const made = make();
    this.#making = made.catch(() => {});
    return made;
  }

  /** The process is about to end: nothing more is made. Resolves when all is gone, or after a second. */
  remove(): Promise<void> {
    this.#removing ??= Promise.race([this.#removeAll(), delay(this.#clock, removeLimitMs)]);
    return this.#removing;
  }

  async #removeAll(): Promise<void> {
    await this.#making;
    if (this.#places !== null) await removeTracesOf(await instanceOfProcess(process.pid), this.#places);
  }
}

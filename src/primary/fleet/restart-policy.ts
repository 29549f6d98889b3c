const firstDelayMs = 100;
const maxDelayMs = 5000;
/** A worker that lived this long was sound: the next one starts without a long delay. */
const soundAfterMs = 10_000;

/** Backoff between restarts: 0.1 s, doubled at each worker that dies young, up to 5 s. */
export class RestartPolicy {
  #deathsInARow = 0;

  /** Milliseconds to wait before the next start, for a worker that listened for `livedMs`. */
  delayAfter(livedMs: number): number {
    if (livedMs >= soundAfterMs) this.#deathsInARow = 0;
    const delayMs = firstDelayMs * 2 ** this.#deathsInARow;
    this.#deathsInARow++;
    return Math.min(delayMs, maxDelayMs);
  }
}

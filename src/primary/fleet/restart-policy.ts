const firstDelayMs = 100;
const maxDelayMs = 5000;

/** Backoff between starts in vain: 0.1 s, doubled each time, up to 5 s. A worker that had listened is replaced at once. */
export class RestartPolicy {
  #startsInVain = 0;

  /** Milliseconds to wait before the next start. */
  delayAfter(hadListened: boolean): number {
    if (hadListened) {
      this.#startsInVain = 0;
      return 0;
    }
    return Math.min(firstDelayMs * 2 ** this.#startsInVain++, maxDelayMs);
  }
}

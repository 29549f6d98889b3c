/** Connections of one user over all workers. A browser or an SDK opens a few, a gateway some dozens. */
export const maxUserConnections = 256;

/**
 * Counts the open connections on the Unix socket by their user, for all workers. Connections with an unknown user
 * (null) count as one user.
 */
export class UserConnections {
  readonly #counts = new Map<number | null, number>();

  /** Yields once whether the connection may stay. An allowed connection counts until the signal is aborted. */
  async *holdConnection(uid: number | null, signal: AbortSignal): AsyncGenerator<{ readonly isAllowed: boolean }> {
    const count = this.#counts.get(uid) ?? 0;
    if (count >= maxUserConnections) return yield { isAllowed: false };
    this.#counts.set(uid, count + 1);
    try {
      yield { isAllowed: true };
      await aborted(signal);
    } finally {
      this.#release(uid);
    }
  }

  #release(uid: number | null): void {
    const left = (this.#counts.get(uid) ?? 1) - 1;
    if (left > 0) this.#counts.set(uid, left);
    else this.#counts.delete(uid);
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Items of a stream that may be under way. A delta has up to 16 Ki UTF-16 units: a slow reader holds 128 Ki here. */
export const streamWindow = 8;

/** Owns the credit and the signal of one stream that this end serves. */
export class ServedStream {
  readonly #controller = new AbortController();
  #credit = streamWindow;
  #wake: (() => void) | undefined;

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  addCredit(count: number): void {
    this.#credit += count;
    this.#wake?.();
  }

  abort(reason: Error): void {
    this.#controller.abort(reason);
    this.#wake?.();
  }

  /** Waits until one more item may be sent. Returns false when the caller has gone. */
  async takeCredit(): Promise<boolean> {
    while (this.#credit === 0 && !this.signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    this.#credit--;
    return !this.signal.aborted;
  }
}

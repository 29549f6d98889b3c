/** Clock and timers of the page. No other module uses the browser's clock and timers. */
export interface PageClock {
  /** Returns milliseconds since the epoch. */
  now(): number;
  /** Calls `call` once after `ms`. Returns the function that cancels the timer. */
  after(ms: number, call: () => void): () => void;
  /** Calls `call` every `ms`. Returns the function that stops the timer. */
  every(ms: number, call: () => void): () => void;
}

/** Resolves after `ms`. Rejects with the reason of the signal if it aborts, or has aborted. */
export function delay(clock: Pick<PageClock, 'after'>, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const onAbort = () => {
      stopTimer();
      reject(signal.reason);
    };
    const stopTimer = clock.after(ms, () => {
      signal.removeEventListener('abort', onAbort);
      resolve();
    });
    signal.addEventListener('abort', onAbort, { once: true });
  });
}

export const browserClock: PageClock = {
  now: () => Date.now(),
  after: (ms, call) => {
    const timer = setTimeout(call, ms);
    return () => clearTimeout(timer);
  },
  every: (ms, call) => {
    const timer = setInterval(call, ms);
    return () => clearInterval(timer);
  },
};

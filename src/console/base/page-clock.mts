/** Time and timers of the page. Nothing else reads them. */
export interface PageClock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls once, later. The function that it returns takes that back. */
  after(ms: number, call: () => void): () => void;
  /** Calls again and again, until the function that it returns is called. */
  every(ms: number, call: () => void): () => void;
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

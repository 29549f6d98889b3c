/** Stops a timer. Does nothing where the timer has fired or been stopped already. */
export type StopTimer = () => void;

/** The only source of time. Tests hand in a fake one. */
export interface Clock {
  /** Wall-clock time, milliseconds since the epoch: for people and records. */
  now(): number;
  /** Milliseconds that never jump: for measuring and for limits. */
  monotonicMs(): number;
  after(ms: number, action: () => void): StopTimer;
  every(ms: number, action: () => void): StopTimer;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(ms, action) {
    const timer = setTimeout(action, ms);
    return () => clearTimeout(timer);
  },
  every(ms, action) {
    const timer = setInterval(action, ms);
    return () => clearInterval(timer);
  },
};

export function delay(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.after(ms, resolve);
  });
}

/** Resolves at the end of this turn of the event loop, when everything that has arrived by now has been handled. */
export function endOfLoopTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** RFC 3339 in UTC with milliseconds. */
export function timestamp(epochMs: number): string {
  return new Date(epochMs).toISOString();
}

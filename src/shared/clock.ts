/** Stops a timer; has no effect if the timer has fired or was stopped. */
export type StopTimer = () => void;

/** The only source of time, so that tests can replace it. */
export interface Clock {
  /** Returns the wall-clock time in milliseconds since the epoch, for display and records. */
  now(): number;
  /** Returns milliseconds that never jump, for measurements and limits. */
  monotonicMs(): number;
  after(ms: number, action: () => void): StopTimer;
  every(ms: number, action: () => void): StopTimer;
}

/** Longest timer, 24 days: for a longer one, Node fires at once and prints a warning. */
const maxTimerMs = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(ms, action) {
    if (ms > maxTimerMs) return afterMonths(ms, action);
    const timer = setTimeout(action, Math.max(0, ms)); // Node also warns about a negative time
    return () => clearTimeout(timer);
  },
  every(ms, action) {
    const timer = setInterval(action, Math.min(ms, maxTimerMs));
    return () => clearInterval(timer);
  },
};

function afterMonths(ms: number, action: () => void): StopTimer {
  let stop = systemClock.after(maxTimerMs, () => {
    stop = systemClock.after(ms - maxTimerMs, action);
  });
  return () => stop();
}

export function delay(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.after(ms, resolve);
  });
}

/** Lets the event loop handle all received events before the caller continues. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** Formats a time as RFC 3339 in UTC with milliseconds. */
export function timestamp(epochMs: number): string {
  return new Date(epochMs).toISOString();
}

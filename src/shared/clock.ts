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

/** 24 days. Node fires a longer timer at once, and warns of it on stderr. */
const maxTimerMs = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(ms, action) {
    if (ms > maxTimerMs) return afterMonths(ms, action);
    const timer = setTimeout(action, Math.max(0, ms)); // of a negative time, Node warns too
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

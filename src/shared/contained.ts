import type { Clock } from './clock.js';

/** Receives unexpected errors. */
export type OnFault = (fault: unknown) => void;

/**
 * Returns the listener with its exceptions passed to `onFault`. An exception in a listener, a timer or a tick would end
 * the process, and with it the jobs of all clients.
 */
export function contained<A extends readonly unknown[]>(
  listener: (...args: A) => void,
  onFault: OnFault,
): (...args: A) => void {
  return (...args) => {
    try {
      listener(...args);
    } catch (error) {
      onFault(error);
    }
  };
}

/** Returns the clock with exceptions of timer actions passed to `onFault`. */
export function containedClock(clock: Clock, onFault: OnFault): Clock {
  return {
    now: () => clock.now(),
    monotonicMs: () => clock.monotonicMs(),
    after: (ms, action) => clock.after(ms, contained(action, onFault)),
    every: (ms, action) => clock.every(ms, contained(action, onFault)),
  };
}

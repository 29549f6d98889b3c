import type { Clock } from './clock.js';

/** Receives what an action has thrown by mistake. */
export type OnFault = (fault: unknown) => void;

/**
 * The same listener, except that what it throws goes to `onFault`. An exception in a listener, a timer or a tick would end
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

/** The same clock, except that what an action of a timer throws goes to `onFault`. */
export function containedClock(clock: Clock, onFault: OnFault): Clock {
  return {
    now: () => clock.now(),
    monotonicMs: () => clock.monotonicMs(),
    after: (ms, action) => clock.after(ms, contained(action, onFault)),
    every: (ms, action) => clock.every(ms, contained(action, onFault)),
  };
}

import { suites } from '../../suites.js';

const leastLimitMs = 15_000;
/** Half of the time limit of a test of this suite: on a busy machine, the message of this module says more than Jest's. */
const limitMs = Math.max(leastLimitMs, testLimitMs() / 2);
const shortestPauseMs = 10;
const longestPauseMs = 50;

function testLimitMs(): number {
  const suite = suites[process.env.SUITE ?? 'test'];
  return suite !== undefined && 'timeLimitMs' in suite ? suite.timeLimitMs : 0;
}

/**
 * Polls until the result is truthy, for conditions without an event. Rejects after 15 s or half of a test's limit, or
 * `withinMs`. Each pause is a
 * tenth of the time waited so far, because many probes are requests, which would take the processor from the service
 * that the test waits for.
 */
export async function until<T>(probe: () => T | Promise<T>, what: string, withinMs = limitMs): Promise<NonNullable<T>> {
  const begunMs = performance.now();
  for (;;) {
    const value = await probe();
    if (value) return value as NonNullable<T>;
    const waitedMs = performance.now() - begunMs;
    if (waitedMs > withinMs) throw new Error(`waited ${withinMs} ms without success for ${what}`);
    const pauseMs = Math.min(Math.max(waitedMs / 10, shortestPauseMs), longestPauseMs);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

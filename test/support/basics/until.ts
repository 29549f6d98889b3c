const limitMs = 15_000;
const shortestPauseMs = 10;
const longestPauseMs = 50;

/**
 * Polls until the result is truthy, for conditions without an event. Rejects after 15 s, or `withinMs`. Each pause is a
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

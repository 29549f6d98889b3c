const limitMs = 15_000;
const stepMs = 10;

/** Polls until the result is truthy, for conditions without an event. Rejects after 15 s, or `withinMs`. */
export async function until<T>(probe: () => T | Promise<T>, what: string, withinMs = limitMs): Promise<NonNullable<T>> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const value = await probe();
    if (value) return value as NonNullable<T>;
    if (performance.now() > deadline) throw new Error(`waited ${withinMs} ms without success for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, stepMs));
  }
}

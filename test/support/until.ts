const limitMs = 15_000;
const stepMs = 10;

/** Resolves with the first truthy value; for what has no event to await. Rejects after 15 s, or `withinMs`. */
export async function until<T>(probe: () => T | Promise<T>, what: string, withinMs = limitMs): Promise<NonNullable<T>> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const value = await probe();
    if (value) return value as NonNullable<T>;
    if (performance.now() > deadline) throw new Error(`waited ${withinMs} ms in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, stepMs));
  }
}

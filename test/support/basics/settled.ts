/** Resolves after some turns of the event loop, in which all pending work completes. */
export async function settled(turns = 10): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** Resolves after some turns of the event loop: whatever could happen by itself meanwhile has happened. */
export async function settled(turns = 10): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
}

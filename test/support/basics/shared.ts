/**
 * Returns a function that opens something when a test of this block calls it first, and then returns the same to every
 * test. It is closed after the last test of the block. Tests that share a service must not depend on its counts.
 */
export function shared<T extends AsyncDisposable>(open: () => Promise<T>): () => Promise<T> {
  let opened: Promise<T> | null = null;
  afterAll(async () => {
    await (await opened?.catch(() => null))?.[Symbol.asyncDispose]();
  });
  return async () => {
    opened ??= open();
    try {
      return await opened;
    } catch (error) {
      opened = null; // a second try opens another one
      throw error;
    }
  };
}

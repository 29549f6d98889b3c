/**
 * Returns a function that opens something when a test of this block calls it first, and then returns the same to every
 * test. It is closed after the last test of the block. Tests that share a service must not depend on its counts. The
 * second try of a test gets another one, because the first may have drained it, used its limits or left jobs.
 */
export function shared<T extends AsyncDisposable>(open: () => Promise<T>): () => Promise<T> {
  const all: Promise<T>[] = [];
  const begun = new Set<string>();
  let opened: Promise<T> | null = null;
  beforeEach(() => {
    const { currentTestName = '' } = expect.getState();
    if (begun.has(currentTestName)) opened = null;
    begun.add(currentTestName);
  });
  afterAll(async () => {
    for (const each of all) await (await each.catch(() => null))?.[Symbol.asyncDispose]();
  });
  return async () => {
    if (opened === null) {
      opened = open();
      all.push(opened);
    }
    try {
      return await opened;
    } catch (error) {
      opened = null; // a second try opens another one
      throw error;
    }
  };
}

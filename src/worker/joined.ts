/**
 * Joins calls for the same thing: whoever asks while one is under way shares the next with all who ask meanwhile. So no
 * answer is older than its question, and a crowd costs one call at a time.
 */
export function joined<T>(call: () => Promise<T>): () => Promise<T> {
  let running: Promise<unknown> = Promise.resolve();
  let next: Promise<T> | null = null;
  const begin = () => {
    next = null;
    const answer = call();
    running = answer.catch(() => {});
    return answer;
  };
  return () => {
    next ??= running.then(begin);
    return next;
  };
}

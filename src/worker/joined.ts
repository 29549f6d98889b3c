import { turnEnd } from '../shared/clock.js';

/**
 * Joins calls for the same thing: whoever asks while one is under way shares the next with all who ask meanwhile. So no
 * answer is older than its question, and a crowd costs one call at a time. Questions that arrive in the same turn of the
 * loop share one too.
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
    next ??= running.then(turnEnd).then(begin);
    return next;
  };
}

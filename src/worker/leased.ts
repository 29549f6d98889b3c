import type { Clock } from '../shared/clock.js';

/** Calls again only when the last answer was asked for longer ago than this: a crowd costs one call in that time. */
export function leased<T>(call: () => Promise<T>, maxAgeMs: number, clock: Clock): () => Promise<T> {
  let answer: Promise<T> | null = null;
  let askedMs = 0;
  const ask = () => {
    const asked = call();
    askedMs = clock.monotonicMs();
    answer = asked;
    asked.catch(() => {
      if (answer === asked) answer = null;
    });
    return asked;
  };
  return () => (answer !== null && clock.monotonicMs() - askedMs < maxAgeMs ? answer : ask());
}

import { turnEnd } from '../shared/clock.js';

/**
 * Joins the calls of one turn of the loop: who asks for the same thing in it shares one call, made at its end. So no
 * answer is older than its question, and a crowd costs few calls. One that is under way is not waited for: the loop
 * would idle, and each call would serve half a crowd.
 */
export function joined<T>(call: () => Promise<T>): () => Promise<T> {
  let next: Promise<T> | null = null;
  const begin = () => {
    next = null;
    return call();
  };
  return () => {
    next ??= turnEnd().then(begin);
    return next;
  };
}

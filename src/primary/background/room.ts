import { RelayError } from '../../shared/errors.js';

/** Texts and images of all jobs that wait, together. */
export const maxWaitingBytes = 64 * 1024 * 1024;
/** What one client may have of the room: a quarter is never its alone. */
const ownShare = 3 / 4;
export const ownMaxBytes = maxWaitingBytes * ownShare;
/** Where nobody knows better. */
const retrySeconds = 30;

/** One that asks for room. */
export interface NewJob {
  readonly client: string;
  readonly bytes: number;
}

export function bytesOf(jobs: readonly NewJob[]): number {
  return jobs.reduce((sum, { bytes }) => sum + bytes, 0);
}

export function ownMaxJobs(maxJobs: number): number {
  return Math.max(1, maxJobs * ownShare);
}

export function noRoom(whose: 'all' | 'client'): RelayError {
  const what = whose === 'all' ? 'too many background jobs wait' : 'too many background jobs of this client wait';
  return new RelayError('concurrency_limited', `${what} (MODEL_API_MAX_JOBS)`, { retryAfterSeconds: retrySeconds });
}

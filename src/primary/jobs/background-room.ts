import { holderOf } from '../../shared/client.js';
import { RelayError } from '../../shared/errors.js';

/** Texts and images of all jobs that wait, together. */
export const maxWaitingBytes = 64 * 1024 * 1024;
/** What one client may have of the room: a quarter is never its alone. The same holds for one name of what its key may have. */
const ownShare = 3 / 4;
/** Where nobody knows better. */
const retrySeconds = 30;

/** One that asks for room. */
export interface NewJob {
  readonly client: string;
  readonly bytes: number;
}

/** So many jobs, and so many bytes of them together. */
export interface Room {
  readonly jobs: number;
  readonly bytes: number;
}

/** What one client may have where all may have so many jobs: the holder of a key, together with all names that it speaks for. */
export function roomOfHolder(maxJobs: number): Room {
  return { jobs: Math.max(1, maxJobs * ownShare), bytes: maxWaitingBytes * ownShare };
}

/** What one name may have of that. */
export function roomOfName(maxJobs: number): Room {
  const { jobs, bytes } = roomOfHolder(maxJobs);
  return { jobs: Math.max(1, jobs * ownShare), bytes: bytes * ownShare };
}

/** Whether one more of this size is within the room. A single job of any size is. */
function hasRoom(held: Room, bytes: number, room: Room): boolean {
  return held.jobs < room.jobs && (held.jobs === 0 || held.bytes + bytes <= room.bytes);
}

const refusals = {
  all: 'too many background jobs wait',
  holder: 'too many background jobs of this client wait',
  name: 'too many background jobs of this user of the key wait',
};

export function noRoom(whose: keyof typeof refusals): RelayError {
  const message = `${refusals[whose]} (MODEL_API_MAX_JOBS)`;
  return new RelayError('concurrency_limited', message, { retryAfterSeconds: retrySeconds });
}

/** Throws where there is no room for this job beside those that wait. */
export function checkRoom({ client, bytes }: NewJob, waiting: readonly NewJob[], maxJobs: number): void {
  const all = sumOf(waiting);
  if (all.jobs >= maxJobs || all.bytes + bytes > maxWaitingBytes) throw noRoom('all');
  const holder = holderOf(client);
  const ofHolder = waiting.filter((job) => holderOf(job.client) === holder);
  if (!hasRoom(sumOf(ofHolder), bytes, roomOfHolder(maxJobs))) throw noRoom('holder');
  const own = sumOf(ofHolder.filter((job) => job.client === client));
  const isOneOfMany = client !== holder || own.jobs < ofHolder.length;
  if (isOneOfMany && !hasRoom(own, bytes, roomOfName(maxJobs))) throw noRoom('name');
}

function sumOf(jobs: readonly NewJob[]): Room {
  return { jobs: jobs.length, bytes: jobs.reduce((sum, { bytes }) => sum + bytes, 0) };
}

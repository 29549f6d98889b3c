import { holderOf } from '../../shared/client.js';
import { RelayError } from '../../shared/errors.js';
import type { Amount, FairShare, Sharer } from '../fairness/fair-share.js';

/** Texts and images of all jobs that wait, together. */
export const maxWaitingBytes = 64 * 1024 * 1024;
/** What one client may have of the room: a quarter is never its alone. The same holds for one name of what its key may have. */
const ownShare = 3 / 4;
/** Where nobody knows better. */
const retrySeconds = 30;

/** What one client may have where all may have so many jobs: the holder of a key, together with all names that it speaks for. */
export function roomOfHolder(maxJobs: number): Amount {
  return { count: Math.max(1, maxJobs * ownShare), bytes: maxWaitingBytes * ownShare };
}

/** What one name may have of that. */
export function roomOfName(maxJobs: number): Amount {
  const { count, bytes } = roomOfHolder(maxJobs);
  return { count: Math.max(1, count * ownShare), bytes: bytes * ownShare };
}

/** Whether one more of this size is within the room. A single job of any size is. */
function hasRoom(held: Amount, bytes: number, room: Amount): boolean {
  return held.count < room.count && (held.count === 0 || held.bytes + bytes <= room.bytes);
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

/** Throws if there is no room for this job beside those that wait. */
export function checkRoom<M extends Sharer>({ client, bytes }: Sharer, waiting: FairShare<M>, maxJobs: number): void {
  if (waiting.count >= maxJobs || waiting.bytes + bytes > maxWaitingBytes) throw noRoom('all');
  const ofHolder = waiting.of(client);
  if (!hasRoom(ofHolder, bytes, roomOfHolder(maxJobs))) throw noRoom('holder');
  const own = ofHolder.amountOf(client);
  const isOneOfMany = client !== holderOf(client) || own.count < ofHolder.count;
  if (isOneOfMany && !hasRoom(own, bytes, roomOfName(maxJobs))) throw noRoom('name');
}

import { holderOf } from '../../shared/client.js';
import { RelayError } from '../../shared/errors.js';
import type { Amount, FairShare, Sharer } from '../fairness/fair-share.js';

/** Maximum total size of the texts and images of all waiting background jobs. */
export const maxWaitingBytes = 64 * 1024 * 1024;
/**
 * Largest share of one client: other clients can always use at least a quarter. The same limit applies to each
 * sub-client within the share of its key.
 */
const ownShare = 3 / 4;
/** Default of `Retry-After`, because no estimate exists. */
const retrySeconds = 30;

/** Returns the share of one key holder, including all its sub-clients, of a queue for `maxJobs` jobs. */
export function roomOfHolder(maxJobs: number): Amount {
  return { count: Math.max(1, maxJobs * ownShare), bytes: maxWaitingBytes * ownShare };
}

/** Returns the share of one sub-client within its holder's share. */
export function roomOfName(maxJobs: number): Amount {
  const { count, bytes } = roomOfHolder(maxJobs);
  return { count: Math.max(1, count * ownShare), bytes: bytes * ownShare };
}

/** Whether one more job of this size fits. A first job always fits, whatever its size. */
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

/** Throws `concurrency_limited` if this job does not fit beside the waiting jobs. */
export function checkRoom<M extends Sharer>({ client, bytes }: Sharer, waiting: FairShare<M>, maxJobs: number): void {
  if (waiting.count >= maxJobs || waiting.bytes + bytes > maxWaitingBytes) throw noRoom('all');
  const keyUse = waiting.holderShare(client);
  if (!hasRoom(keyUse, bytes, roomOfHolder(maxJobs))) throw noRoom('holder');
  const ownUse = waiting.clientShare(client);
  const isOneOfMany = client !== holderOf(client) || ownUse.count < keyUse.count;
  if (isOneOfMany && !hasRoom(ownUse, bytes, roomOfName(maxJobs))) throw noRoom('name');
}

import { RelayError } from '../../../shared/errors.js';

/** Maximum total size of the texts and images of all waiting background jobs. */
export const maxWaitingBytes = 64 * 1024 * 1024;
/**
 * Largest share of one client: other clients can always use at least a quarter. The same limit applies to each
 * sub-client within the share of its key.
 */
const clientShare = 3 / 4;
/** Default of `Retry-After`, because no estimate exists. */
const retrySeconds = 30;

/** Returns the share of one key holder, including all its sub-clients, of a queue for `maxJobs` jobs. */
export function holderRoom(maxJobs: number) {
  return { count: Math.max(1, maxJobs * clientShare), bytes: maxWaitingBytes * clientShare };
}

/** Returns the share of one sub-client within its holder's share. */
export function nameRoom(maxJobs: number) {
  const { count, bytes } = holderRoom(maxJobs);
  return { count: Math.max(1, count * clientShare), bytes: bytes * clientShare };
}

const refusals = {
  all: 'too many background jobs wait',
  holder: 'too many background jobs of this client wait',
  name: 'too many background jobs of this user of the key wait',
};

/** Returns the error of a job that exceeds the limit of all jobs, of its key holder, or of its sub-client. */
export function noRoom(limit: keyof typeof refusals): RelayError {
  const message = `${refusals[limit]} (MODEL_API_MAX_JOBS)`;
  return new RelayError('concurrency_limited', message, { retryAfterSeconds: retrySeconds });
}

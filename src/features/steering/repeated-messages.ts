import { createHash } from 'node:crypto';
import { setNewest } from '../../shared/bounded-map.js';
import type { ClientText } from '../../shared/client.js';
import { RelayError } from '../../shared/errors.js';
import type { ClientJobs } from '../background/client-jobs.js';
import type { RepeatedMessage, SteerOrder, TurnPlace } from './shared.js';

/** Messages with a key that are remembered after the turn that has got them. */
const maxRemembered = 4096;

/**
 * Finds messages that are repeated with their Idempotency-Key after the worker of the first request has ended: its
 * answer was not recorded, and the turn may have ended since.
 */
export class RepeatedMessages {
  readonly #jobs: Pick<ClientJobs, 'openJob'>;
  /** Ids of messages that a running turn has got. */
  readonly #reached = new Map<string, true>();

  constructor(jobs: Pick<ClientJobs, 'openJob'>) {
    this.#jobs = jobs;
  }

  /** Records that the running turn has got the message. */
  recordReached(id: string): void {
    setNewest(this.#reached, id, true, maxRemembered);
  }

  /** Resolves with null for a message that is not known. */
  async findMessage(id: string, client: ClientText): Promise<RepeatedMessage | null> {
    if (this.#reached.has(id)) return { repeated: null };
    try {
      await this.#jobs.openJob(id, client);
      return { repeated: id };
    } catch (error) {
      if (error instanceof RelayError && error.code === 'not_found') return null;
      throw error;
    }
  }
}

/** Returns the id of the job that a message becomes as the next turn: the same one for the same message with the same key. */
export function nextTurnId({ client, of, id }: TurnPlace, { key, text }: SteerOrder): string | null {
  if (key === null || text === null) return null;
  const digest = createHash('sha256')
    .update(JSON.stringify([client, of, id, key, text]))
    .digest();
  return `j${digest.subarray(0, 18).toString('base64url')}`;
}

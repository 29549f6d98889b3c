import type { StoreBackup, StoreReport } from '../../shared/api/store.js';
import type { Config } from '../../shared/config/config.js';
import { invalid } from '../../shared/errors.js';
import { answerTtlMs } from '../idempotency/idempotency-store.js';

/** How many rows of each table. */
export type Counts = Readonly<Record<string, number>>;

/** What has expired before these times, milliseconds since the epoch, should be gone. */
export interface Expiry {
  readonly conversations: number;
  readonly jobs: number;
  readonly idempotency: number;
}

export function expiryAt(now: number, config: Pick<Config, 'conversationTtlMs' | 'jobTtlMs'>): Expiry {
  const { conversationTtlMs, jobTtlMs } = config;
  return { conversations: now - conversationTtlMs, jobs: now - jobTtlMs, idempotency: now - answerTtlMs };
}

/** What an operator does with a store. All of it rejects with a RelayError. */
export interface StoreUpkeep {
  /** A copy of this name, which never takes the place of another file. */
  backup(name: string): Promise<StoreBackup>;
  verify(expiry: Expiry): Promise<StoreReport>;
  /** Everything that belongs to a client is gone when it resolves, from the files too. */
  purge(client: string): Promise<Counts>;
  /** Other files that hold what it held once. */
  copies(): Promise<string[]>;
}

/** Of a store that dies with the service. */
export function memoryUpkeep(answers: { removeOf(client: string): number }): StoreUpkeep {
  return {
    backup: async () => {
      throw invalid('MODEL_API_STORE', 'the store is in memory: there is no file to back up');
    },
    verify: async () => {
      return { kind: 'memory', path: null, version: null, bytes: 0, faults: [], rows: {}, expired: {}, copies: [] };
    },
    purge: async (client) => ({ idempotency: answers.removeOf(client) }),
    copies: async () => [],
  };
}

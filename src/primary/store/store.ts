import type { StoreKind } from '../../shared/api/health.js';
import type { JobStore } from '../background/job-store.js';
import type { SharedJobs } from '../background/shared-jobs.js';
import { type ConversationJournal, keepsNothing } from '../conversations/conversation-journal.js';
import type { SharedStore } from '../conversations/shared-store.js';
import type { IdempotencyStore } from '../idempotency/idempotency-store.js';
import { MemoryAnswers } from '../idempotency/memory-answers.js';
import type { WindowCounter } from '../limits/window-counter.js';
import { keepsNoUsage, type UsageJournal } from '../usage/usage-journal.js';
import { MemoryJobs } from './memory-jobs.js';
import { memoryUpkeep, type StoreUpkeep } from './store-upkeep.js';

/** What is asked of a store, as it is measured. */
export const storeOperations = [
  ...(['enter', 'commit', 'remove', 'read', 'restore', 'tidy'] as const),
  ...(['job', 'usage', 'answer', 'upkeep'] as const),
] as const;
export type StoreOperation = (typeof storeOperations)[number];

export interface StoreObserver {
  /** Also where it has failed. */
  done(operation: StoreOperation, ms: number): void;
  /** Told once, not for each thing that fails. */
  down(reason: string): void;
  back(): void;
  /** Something is wrong with the store that does not keep it from being used. */
  warned(reason: string): void;
}

export const silentObserver: StoreObserver = { done: () => {}, down: () => {}, back: () => {}, warned: () => {} };

/** Where the service keeps what is to outlive it. */
export interface Store {
  readonly kind: StoreKind;
  readonly conversations: ConversationJournal;
  /** The same conversations, where other hosts go on with them too; else null. */
  readonly shared: SharedStore | null;
  readonly jobs: JobStore;
  /** The same jobs, where any host takes one; else null. */
  readonly sharedJobs: SharedJobs | null;
  readonly usage: UsageJournal;
  /** Rate windows, where hosts share them; else null. */
  readonly windows: WindowCounter | null;
  /** To requests with an Idempotency-Key. */
  readonly answers: IdempotencyStore;
  readonly upkeep: StoreUpkeep;
  /** Whether it takes what it is asked to keep, as far as is known. */
  readonly isUp: boolean;
  /** There is one observer. */
  observe(observer: StoreObserver): void;
  /** Resolves when everything that was asked of it has been done. May be called again. */
  close(): Promise<void>;
}

/** Nothing outlives the service. */
export function memoryStore(): Store {
  const answers = new MemoryAnswers();
  return {
    kind: 'memory',
    conversations: keepsNothing,
    shared: null,
    windows: null,
    jobs: new MemoryJobs(),
    sharedJobs: null,
    usage: keepsNoUsage,
    upkeep: memoryUpkeep(answers),
    answers,
    isUp: true,
    observe: () => {},
    close: async () => {},
  };
}

import { type ConversationJournal, keepsNothing } from '../conversations/conversation-journal.js';

/** What is asked of a store, as it is measured. */
export const storeOperations = ['commit', 'remove', 'restore', 'tidy'] as const;
export type StoreOperation = (typeof storeOperations)[number];

export interface StoreObserver {
  /** Also where it has failed. */
  done(operation: StoreOperation, ms: number): void;
  /** Told once, not for each thing that fails. */
  down(reason: string): void;
  back(): void;
}

/** Where the service keeps what is to outlive it. */
export interface Store {
  readonly kind: 'memory' | 'sqlite';
  readonly conversations: ConversationJournal;
  /** Whether it takes what it is asked to keep, as far as is known. */
  readonly isUp: boolean;
  /** There is one observer. */
  observe(observer: StoreObserver): void;
  /** Resolves when everything that was asked of it has been done. May be called again. */
  close(): Promise<void>;
}

/** Nothing outlives the service. */
export const memoryStore: Store = {
  kind: 'memory',
  conversations: keepsNothing,
  isUp: true,
  observe: () => {},
  close: async () => {},
};

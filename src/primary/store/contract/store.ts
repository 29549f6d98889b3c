import type { StoreKind } from '../../../shared/api/health.js';
import type { StoreBackup, StoreReport } from '../../../shared/api/store.js';
import type { Config } from '../../../shared/config/config.js';
import { answerTtlMs, type IdempotencyStore } from './answers.js';
import type { ConversationJournal } from './conversations.js';
import type { JobStore } from './jobs.js';
import type { ResponseStore } from './responses.js';
import type { UsageStore } from './usage.js';

/** What a store does, as it is measured. */
export const storeOperations = [
  ...(['enter', 'commit', 'remove', 'read', 'restore', 'tidy'] as const),
  ...(['job', 'usage', 'answer', 'response', 'upkeep'] as const),
] as const;
export type StoreOperation = (typeof storeOperations)[number];

export interface StoreObserver {
  /** Also after a failure. */
  done(operation: StoreOperation, ms: number): void;
  /** Called once when the store goes down, not for each operation that fails. */
  down(reason: string): void;
  back(): void;
  /** Something is wrong with the store, but it can be used. */
  warned(reason: string): void;
}

export const silentObserver: StoreObserver = { done: () => {}, down: () => {}, back: () => {}, warned: () => {} };

/** Stores what is to outlive the service. */
export interface Store {
  readonly kind: StoreKind;
  readonly conversations: ConversationJournal;
  readonly jobs: JobStore;
  readonly usage: UsageStore;
  /** Rate windows, if hosts share them; else null. */
  readonly windows: WindowCounter | null;
  /** To requests with an Idempotency-Key. */
  readonly answers: IdempotencyStore;
  /** Of the Responses API, where the client wants them stored. */
  readonly responses: ResponseStore;
  readonly upkeep: StoreUpkeep;
  /** Whether the last write succeeded. */
  readonly isUp: boolean;
  /** There is one observer. */
  observe(observer: StoreObserver): void;
  /**
   * Calls `takeOver`, which reads what earlier services have left: now, or once the file can be opened; and again after a
   * failure that may pass. Rejects with a StoreFault for any other one.
   */
  restore(takeOver: () => Promise<void>): Promise<void>;
  /** Resolves when every earlier operation has ended. May be called again. */
  close(): Promise<void>;
}

/** A rate window: its count, and how long it still lasts. */
export interface CountedWindow {
  readonly count: number;
  readonly leftMs: number;
}

/** Counts in windows that all hosts share. */
export interface WindowCounter {
  /** Opens the window unless it is open. Rejects soon if it cannot count. */
  add(name: string, points: number, windowMs: number): Promise<CountedWindow>;
}

/** The number of rows of each table. */
export type Counts = Readonly<Record<string, number>>;

/** What has expired before these times, milliseconds since the epoch, should be gone. */
export interface Expiry {
  readonly conversations: number;
  readonly jobs: number;
  readonly idempotency: number;
  readonly responses: number;
}

export function expiryAt(now: number, config: Pick<Config, 'conversationTtlMs' | 'jobTtlMs'>): Expiry {
  const { conversationTtlMs, jobTtlMs } = config;
  const conversations = now - conversationTtlMs;
  return { conversations, jobs: now - jobTtlMs, idempotency: now - answerTtlMs, responses: conversations };
}

/** What an operator does with a store. All of it rejects with a RelayError. */
export interface StoreUpkeep {
  /** Writes a copy of this name. It never replaces another file. */
  backup(name: string): Promise<StoreBackup>;
  verify(expiry: Expiry): Promise<StoreReport>;
  /** Resolves when everything of the client is gone, from the files too. */
  purge(client: string): Promise<Counts>;
  /** Other files with earlier contents of the store. */
  copies(): Promise<string[]>;
}

/** Why a store cannot be opened, as a sentence for the operator. */
export class StoreFault extends Error {
  override readonly name = 'StoreFault';
}

/** May be over without a change of the settings: the disk is full or not there yet. */
export class PassingFault extends StoreFault {}

/** Another process has the file open. */
export class HeldFault extends PassingFault {}

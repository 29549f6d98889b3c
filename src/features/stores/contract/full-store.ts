import type { CreatePrimaryPart, PrimaryCore, PrimaryPart } from '../../../primary/features/feature.js';
import type { OpenedStore } from '../../../primary/hosts/hosts.js';
import type { Store, StoreUpkeep } from '../../../primary/store/contract/store.js';
import type { ClientText } from '../../../shared/client.js';
import type { AnswerStore } from './answers.js';
import type { FileStore } from './files.js';
import type { JobStore } from './jobs.js';
import type { ResponseStore } from './responses.js';
import type { SharedText } from './shared-text.js';
import type { StoreTables } from './tables.js';
import type { UsageStore } from './usage.js';

/** Store with the contents of all features. Each kind of stores is one. */
export interface FullStore extends Store {
  readonly jobs: JobStore;
  readonly usage: UsageStore;
  /** Recorded answers, which repeated requests get. */
  readonly answers: AnswerStore;
  /** Stored responses of the Responses API. */
  readonly responses: ResponseStore;
  /** Tables that features have declared. */
  readonly tables: StoreTables;
  /** Files of clients, and the lines in them that run. */
  readonly files: FileStore;
  readonly upkeep: FullUpkeep;
  /** Opens the text of this name; null if no other host uses the store. */
  openText(name: string): SharedText | null;
}

export interface FullUpkeep extends StoreUpkeep {
  /** Returns the ids of the stored responses or recorded answers of a client. */
  idsOf(client: ClientText, kind: 'response' | 'answer'): Promise<readonly string[]>;
  /** Removes the ended rows of declared tables after their time, and the old rows of tables that no feature declares. */
  expireRows(now: number): Promise<void>;
}

export interface OpenedFullStore extends OpenedStore {
  readonly store: FullStore;
}

/** Parts of the primary for features that need the full store. */
export type StoringCore = PrimaryCore & {
  readonly store: Omit<FullStore, keyof Store> & { readonly upkeep: FullUpkeep };
};

/** Declares that a feature needs the full store, which every service with the feature `stores` has. */
export function usingStore(create: (core: StoringCore) => PrimaryPart): CreatePrimaryPart {
  return create as CreatePrimaryPart;
}

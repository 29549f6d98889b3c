import type { PurgeReport } from '../../shared/api/store.js';
import { holderOf, readClientId, writeClientId } from '../../shared/client.js';
import type { Config } from '../../shared/config/config.js';
import type { Clients } from '../access/clients.js';
import type { ConversationStore } from '../conversations/conversation-store.js';
import type { FeatureHooks } from '../features/feature-hooks.js';
import type { Host } from '../lifecycle/host.js';
import type { UsageJournal } from '../observe/usage-journal.js';
import type { UsageLedger } from '../observe/usage-ledger.js';
import { type Counts, expiryAt, type Store } from '../store/contract/store.js';
import type { SharedHandlers } from '../workers/worker-handle.js';

/** Parts that store data of a client. */
export interface PurgedParts {
  readonly conversations: Pick<ConversationStore, 'list' | 'remove'>;
  readonly features: Pick<FeatureHooks, 'purge'>;
  readonly usage: Pick<UsageLedger, 'forget'>;
  readonly usageJournal: Pick<UsageJournal, 'add'>;
  readonly store: Pick<Store, 'upkeep'>;
  readonly clis: readonly { readonly pool: { endSessionsOf(isAmong: (client: string) => boolean): void } }[];
}

/** Parts that know the keys of a person. */
interface KnownClients {
  readonly clients: Pick<Clients, 'keyClients'>;
  readonly usageJournal: Pick<UsageJournal, 'report'>;
}

/** Returns the operations of an operator on the store. */
export function storeUpkeep(
  parts: PurgedParts &
    KnownClients & {
      readonly config: Config;
      readonly host: Pick<Host, 'clock' | 'log'>;
      readonly features: Pick<FeatureHooks, 'beforeAct' | 'purge'>;
    },
): Pick<SharedHandlers, 'backupStore' | 'verifyStore' | 'purgeClient'> {
  const { config, host, store, features } = parts;
  return {
    backupStore: async ({ name, by }) => {
      await features.beforeAct({ act: 'store_backed_up', by: by.client, target: name, request_id: by.requestId });
      return store.upkeep.backup(name);
    },
    verifyStore: () => store.upkeep.verify(expiryAt(host.clock.now(), config)),
    purgeClient: async ({ client, by }) => {
      await features.beforeAct({ act: 'client_purged', by: by.client, target: client, request_id: by.requestId });
      let report = await purgeClient(parts, client);
      for (const key of await keysOfPerson(parts, client)) {
        const { removed, copies } = await purgeClient(parts, key);
        report = { client, removed: sums(report.removed, removed), copies };
      }
      host.log.warn('client_purged', { client });
      return report;
    },
  };
}

/** Returns the clients of the keys that a person has made, also of deleted ones that have usage; empty for other clients. */
async function keysOfPerson({ clients, usageJournal }: KnownClients, person: string): Promise<ReadonlySet<string>> {
  if (readClientId(person).kind !== 'sso') return new Set();
  const rows = await usageJournal.report(null, { since: null, until: null, groups: ['client'] });
  const used = rows.map(({ kind = 'other', client: name = '' }) => writeClientId({ kind, name }));
  return new Set([...clients.keyClients, ...used].filter((each) => each !== person && holderOf(each) === person));
}

/**
 * Removes all data of a client: first from memory, to hide it at once, then from the store. Rejects with
 * `store_unavailable` if the store still has data; the call must then be repeated. Running turns still answer, and a
 * first turn still creates its conversation.
 */
export async function purgeClient(parts: PurgedParts, client: string): Promise<PurgeReport> {
  const { conversations, features, usage, usageJournal, store, clis } = parts;
  for (const { pool } of clis) pool.endSessionsOf((each) => each === client);
  const featureCounts = await features.purge(client);
  const removed = { conversations: removeConversations(conversations, client), ...featureCounts };
  await usageJournal.add(); // otherwise pending usage would be written after the purge
  const days = usage.forget(client);
  const rows = await store.upkeep.purge(client);
  return { client, removed: larger(rows, { ...removed, usage: days }), copies: await store.upkeep.copies() };
}

function sums(some: Counts, others: Counts): Counts {
  const names = Object.keys({ ...some, ...others });
  return Object.fromEntries(names.map((name) => [name, (some[name] ?? 0) + (others[name] ?? 0)]));
}

/** Returns the larger number for each name, because most data are both in memory and in the store. */
function larger(some: Counts, others: Counts): Counts {
  const names = Object.keys({ ...some, ...others });
  return Object.fromEntries(names.map((name) => [name, Math.max(some[name] ?? 0, others[name] ?? 0)]));
}

const removedAtOnce = 100;

function removeConversations(conversations: PurgedParts['conversations'], client: string): number {
  for (let count = 0; ; ) {
    const page = conversations.list(client, null, removedAtOnce);
    if (page.conversations.length === 0) return count;
    for (const { id } of page.conversations) conversations.remove(id, client);
    count += page.conversations.length;
  }
}

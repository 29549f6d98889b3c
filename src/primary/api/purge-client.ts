import type { PurgeReport } from '../../shared/api/store.js';
import { type ClientText, isAddedUsage, isOfClient } from '../../shared/client.js';
import { delay } from '../../shared/clock.js';
import type { Config } from '../../shared/config/config.js';
import { cancelled } from '../../shared/errors.js';
import type { Actor } from '../../shared/ipc/protocol.js';
import type { Clients } from '../access/clients.js';
import type { Removals } from '../access/removals.js';
import type { ConversationStore } from '../conversations/conversation-store.js';
import type { FeatureHooks } from '../features/feature-hooks.js';
import type { Hosts } from '../hosts/hosts.js';
import type { Job } from '../jobs/job.js';
import type { Host } from '../lifecycle/host.js';
import { type Counts, type Store, sumCounts } from '../store/contract/store.js';
import type { SharedHandlers } from '../workers/worker-handle.js';
import type { AccessParts } from './ended-access.js';

/** Parts that store data of a client. */
export interface PurgedParts {
  readonly conversations: Pick<ConversationStore, 'listConversations' | 'removeConversation'>;
  readonly features: Pick<FeatureHooks, 'purge'>;
  readonly store: Pick<Store, 'upkeep'>;
  readonly clis: readonly { readonly pool: { endSessionsOf(isAmong: (client: ClientText) => boolean): void } }[];
}

/** Parts that know the keys of a person. */
interface KnownClients {
  readonly clients: Pick<Clients, 'keyClients'>;
}

/** Parts that the operations of an operator need. */
type UpkeepParts = PurgedParts &
  KnownClients & {
    readonly config: Config;
    readonly host: Pick<Host, 'clock' | 'log'>;
    readonly features: Pick<FeatureHooks, 'beforeAct' | 'clientsWith' | 'purge' | 'removeClients'>;
    readonly removals: Pick<Removals, 'beginRemoval'>;
    readonly hosts: Pick<Hosts, 'removals'> | null;
    readonly openJobs: { readonly callers: readonly Pick<Job, 'request' | 'cut'>[] };
    readonly localJobs: AccessParts['localJobs'];
  };

/** Parts of a host that takes part in the purge of another one. */
interface JoinedParts extends Pick<UpkeepParts, 'removals' | 'openJobs' | 'localJobs' | 'host' | 'clis'> {
  readonly conversations: Pick<ConversationStore, 'dropClients'>;
  readonly features: Pick<FeatureHooks, 'flush'>;
}

/** Returns the operations of an operator on the store. */
export function storeUpkeep(parts: UpkeepParts): Pick<SharedHandlers, 'backupStore' | 'verifyStore' | 'purgeClient'> {
  const { config, store, features } = parts;
  return {
    backupStore: async ({ name, by }) => {
      await features.beforeAct({ act: 'store_backed_up', by: by.client, target: name, request_id: by.requestId });
      return store.upkeep.backup(name);
    },
    verifyStore: () => store.upkeep.verify(config),
    purgeClient: ({ client, by }) => purgeAll(parts, client, by),
  };
}

/** Time to wait until the open jobs of a client have ended. Their processes may be slow to exit. */
const endLimitMs = 10_000;
const endCheckMs = 20;

/**
 * Removes all data of a client, its keys and its sub-clients. Meanwhile they start no job, and their open jobs are ended
 * first, on all hosts, so that nothing comes back. May be repeated after a failure. Writes a record before, and another one with the
 * numbers afterwards.
 */
async function purgeAll(parts: UpkeepParts, client: ClientText, by: Actor): Promise<PurgeReport> {
  const { host, features, removals, hosts } = parts;
  const record = { by: by.client, target: client, request_id: by.requestId };
  await features.beforeAct({ act: 'client_purged', ...record });
  using _ = removals.beginRemoval(client);
  const isAmong = isOfClient(client);
  await endJobs(parts, isAmong);
  using __ = (await hosts?.removals.beginRemoval(client)) ?? null;
  const clients = await clientsOf(parts, client); // read before the purge removes the keys by which these clients are found
  let removed: Counts = await features.removeClients(isAmong, by);
  let copies: readonly string[] = [];
  for (const each of clients) {
    const report = await purgeClient(parts, each);
    removed = sumCounts(removed, report.removed);
    copies = report.copies;
  }
  // Conversations may have been imported while the rest was removed: removes these, too.
  for (const each of clients) removeConversations(parts.conversations, each);
  await features.beforeAct({ act: 'client_purge_ended', ...record, counts: removed });
  host.log.warn('client_purged', { client });
  return { client, clients: [...clients].filter((each) => !isAddedUsage(each)), removed, copies: [...copies] };
}

/**
 * Begins the removal of a client that another host purges: ends what runs of it here, and forgets what is in memory.
 * Dispose the result when its data are gone.
 */
export async function joinRemoval(parts: JoinedParts, client: ClientText): Promise<Disposable> {
  const removal = parts.removals.beginRemoval(client);
  const isAmong = isOfClient(client);
  await endJobs(parts, isAmong);
  for (const { pool } of parts.clis) pool.endSessionsOf(isAmong);
  parts.conversations.dropClients(isAmong);
  await parts.features.flush();
  return removal;
}

/**
 * Ends the open jobs on this host, and waits until those of callers have left; `purgeClient` waits for the others. A
 * background job that got its slot meanwhile would be refused, and would let those of all clients pause.
 */
async function endJobs(
  { openJobs, localJobs, host }: Pick<UpkeepParts, 'openJobs' | 'localJobs' | 'host'>,
  isAmong: (client: ClientText) => boolean,
): Promise<void> {
  const { clock } = host;
  const open = () => openJobs.callers.filter(({ request }) => isAmong(request.client));
  const reason = cancelled('the data of this client are being deleted');
  for (const job of open()) job.cut(reason);
  for (const { request, background } of localJobs.background) if (isAmong(request.client)) background.cancel(reason);
  const untilMs = clock.monotonicMs() + endLimitMs;
  while (open().length > 0 && clock.monotonicMs() < untilMs) await delay(clock, endCheckMs);
}

/** Returns the client, and its keys and sub-clients that have a key or data. */
async function clientsOf(
  { clients, features, store }: UpkeepParts,
  client: ClientText,
): Promise<ReadonlySet<ClientText>> {
  const known = [...clients.keyClients].filter(isOfClient(client));
  return new Set([
    client,
    ...known,
    ...(await features.clientsWith(client)),
    ...(await store.upkeep.clientsWith(client)),
  ]);
}

/**
 * Removes all data of a client: first from memory, to hide it at once, then from the store. Rejects with
 * `store_unavailable` if the store still has data; the call must then be repeated.
 */
export async function purgeClient(parts: PurgedParts, client: ClientText): Promise<Omit<PurgeReport, 'clients'>> {
  const { conversations, features, store, clis } = parts;
  for (const { pool } of clis) pool.endSessionsOf((each) => each === client);
  const featureCounts = await features.purge(client);
  const removed = { conversations: removeConversations(conversations, client), ...featureCounts };
  const rows = await store.upkeep.purge(client);
  return { client, removed: larger(rows, removed), copies: await store.upkeep.copies() };
}

/** Returns the larger number for each name, because most data are both in memory and in the store. */
function larger(some: Counts, others: Counts): Counts {
  const names = Object.keys({ ...some, ...others });
  return Object.fromEntries(names.map((name) => [name, Math.max(some[name] ?? 0, others[name] ?? 0)]));
}

const removedAtOnce = 100;

function removeConversations(conversations: PurgedParts['conversations'], client: ClientText): number {
  for (let count = 0; ; ) {
    const page = conversations.listConversations(client, null, removedAtOnce);
    if (page.conversations.length === 0) return count;
    for (const { id } of page.conversations) conversations.removeConversation(id, client);
    count += page.conversations.length;
  }
}

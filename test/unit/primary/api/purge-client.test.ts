import { Removals } from '../../../../src/primary/access/removals.js';
import { type PurgedParts, purgeClient, storeUpkeep } from '../../../../src/primary/api/purge-client.js';
import { noBill } from '../../../../src/primary/jobs/bill.js';
import type { StoreUpkeep } from '../../../../src/primary/store/contract/store.js';
import { noStore } from '../../../../src/primary/store/memory-store.js';
import type { OperatorAct } from '../../../../src/shared/acts.js';
import type { ClientText } from '../../../../src/shared/client.js';
import { loadConfig } from '../../../../src/shared/config/config.js';
import { storeUnavailable } from '../../../../src/shared/errors.js';
import type { JobRequest } from '../../../../src/shared/job.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { LogBook } from '../../../support/basics/log-book.js';
import { jobDone, jobRequest } from '../../../support/jobs/job-records.js';
import { usagePart } from '../../../support/jobs/usage-part.js';
import { StoreHarness } from '../../../support/stores/conversations.js';

function createParts(upkeep: StoreUpkeep) {
  const harness = new StoreHarness({ maxConversations: 1000 });
  const done: string[] = [];
  const endSessionsOf = (isAmong: (client: ClientText) => boolean) =>
    void done.push(...(['key alice', 'key bob'] as const).filter(isAmong).map((client) => `processes of ${client}`));
  const purge = (client: ClientText) => {
    done.push('store');
    return upkeep.purge(client);
  };
  const parts: PurgedParts = {
    conversations: harness.store,
    features: {
      purge: async () => {
        done.push('features');
        return { jobs: 3, usage: 1 };
      },
    },
    store: { upkeep: { ...upkeep, copies: async () => ['old.db'], purge } },
    clis: [{ pool: { endSessionsOf } }],
  };
  return { parts, harness, done };
}

const storing: StoreUpkeep = { ...noStore.upkeep, purge: async () => ({ idempotency: 2, responses: 4 }) };

describe('A client that is purged', () => {
  it('is removed from memory and the store, while others are not', async () => {
    const { parts, harness, done } = createParts(storing);
    for (let count = 0; count < 250; count++) harness.chat();
    const report = await purgeClient(parts, 'key alice');
    expect(report).toEqual({
      client: 'key alice',
      removed: { conversations: 250, jobs: 3, idempotency: 2, responses: 4, usage: 1 },
      copies: ['old.db'],
    });
    expect(harness.store.counts.conversations).toBe(0);
    expect(done).toEqual(['processes of key alice', 'features', 'store']);
    harness.chat();
    expect((await purgeClient(parts, 'key bob')).removed.conversations).toBe(0);
    expect(harness.store.counts.conversations).toBe(1);
  });

  it('causes an error if the store does not remove it', async () => {
    const broken = {
      ...storing,
      purge: () => Promise.reject(storeUnavailable()),
    };
    await expect(purgeClient(createParts(broken).parts, 'key alice')).rejects.toMatchObject({
      code: 'store_unavailable',
    });
  });

  it('is counted with the data of other hosts in the shared store', async () => {
    const shared = {
      ...storing,
      purge: async () => ({ conversations: 7, usage: 0 }),
    };
    const { removed } = await purgeClient(createParts(shared).parts, 'key alice');
    expect(removed).toEqual({ conversations: 7, jobs: 3, usage: 1 });
  });
});

it('A purge of a person also removes the data of the own keys, even deleted ones, and of no other client', async () => {
  const purged: string[] = [];
  const removals = new Removals();
  const usage = usagePart(new FakeClock());
  for (const client of ['sso ada', 'sso ada/old~1', 'sso eve/ada~1', 'key ada'] as const) usage.countRefusal(client);
  const upkeep: StoreUpkeep = {
    ...noStore.upkeep,
    clientsWith: async (owner) => (owner === 'sso ada' ? ['sso ada/new~2/phone'] : []),
    purge: async (client) => {
      expect([client, removals.isRemoving(client), callers, cancelled]).toEqual([client, true, [], ['sso ada/old~1']]);
      purged.push(client);
      return { files: 1 };
    },
  };
  const { parts } = createParts(upkeep);
  const acts: OperatorAct[] = [];
  const callers: { request: JobRequest; cut: () => void }[] = [];
  const cut = () => void callers.pop();
  callers.push({ request: jobRequest({ client: 'sso ada/new~2' }), cut });
  const cancelled: string[] = [];
  const background = (['sso ada/old~1', 'sso eve/ada~1'] as const).map((client) => ({
    request: { client },
    background: { cancel: () => void cancelled.push(client) },
  }));
  const { purgeClient: purge } = storeUpkeep({
    ...{ ...parts, clients: { keyClients: ['key ada', 'sso ada/new~2', 'made ada~3'] } },
    ...{ config: await loadConfig({}, async () => ''), host: { clock: new FakeClock(), log: new LogBook() } },
    features: {
      purge: (client) => usage.purgeClient(client),
      clientsWith: (owner) => usage.clientsWith(owner),
      beforeAct: async (act) => void acts.push(act),
      removeClients: async (isAmong) => ({ keys: (['sso ada/new~2', 'made ada~3'] as const).filter(isAmong).length }),
    },
    removals,
    hosts: null,
    openJobs: { callers },
    localJobs: { background },
  });
  const by = { client: 'key root' as const, isAdmin: true, requestId: '1' };
  const clients = ['sso ada', 'sso ada/new~2', 'sso ada/old~1', 'sso ada/new~2/phone'];
  const removed = { files: 4, keys: 1, usage: 2 };
  expect(await purge({ client: 'sso ada', by })).toMatchObject({ client: 'sso ada', clients, removed });
  expect(purged).toEqual(clients);
  expect([removals.isRemoving('sso ada'), removals.isRemoving('sso ada/new~2')]).toEqual([false, false]);
  const target = { target: 'sso ada', by: 'key root', request_id: '1' };
  expect(acts).toMatchObject([
    { act: 'client_purged', ...target },
    { act: 'client_purge_ended', ...target, counts: removed },
  ]);
  usage.countAlso(() => ['key ada/%opus']);
  usage.job.jobEnded(jobRequest({ client: 'key ada' }), jobDone(), noBill);
  expect((await purge({ client: 'key ada', by })).clients).toEqual(['key ada']);
  expect(purged.slice(4)).toEqual(['key ada', 'key ada/%opus']);
});

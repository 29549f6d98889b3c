import { Registry } from 'prom-client';
import { eligibleAccounts } from '../../../src/features/accounts/account-choice.js';
import { LimitedUses } from '../../../src/features/budgets/limited-uses.js';
import { StoredFiles } from '../../../src/features/files/stored-files.js';
import { ownActs } from '../../../src/features/keys-api/made-keys.js';
import { SearchQuota, searchLimitsOf } from '../../../src/features/search/search-quota.js';
import { memoryStore } from '../../../src/features/stores/memory/memory-store.js';
import { MemoryTable } from '../../../src/features/stores/memory/memory-table.js';
import { UsageLedger } from '../../../src/features/usage/ledger.js';
import { deliveryTable } from '../../../src/features/webhooks/deliveries.js';
import { Notices } from '../../../src/features/webhooks/notices.js';
import type { Notice } from '../../../src/features/webhooks/webhooks.js';
import { Clients, clientBounds } from '../../../src/primary/access/clients.js';
import { RateLimit } from '../../../src/primary/access/rate-limit.js';
import { plainLaunch } from '../../../src/primary/cli/contract/adapter.js';
import { mayServe } from '../../../src/primary/cli/pool/fitting.js';
import { FairShare, type Sharer } from '../../../src/primary/fairness/fair-share.js';
import { SeenClients } from '../../../src/primary/health/evidence.js';
import { noBill } from '../../../src/primary/jobs/bill.js';
import { tenantOf } from '../../../src/primary/jobs/job-processes.js';
import { ClientMetrics } from '../../../src/primary/observe/job-metrics.js';
import {
  type ClientText,
  holderOf,
  noClient,
  readClientId,
  spendersOf,
  writeClientId,
} from '../../../src/shared/client.js';
import { type AddedKey, type ApiKey, digestOf, plainOptions } from '../../../src/shared/config/api-keys.js';
import { chainId } from '../../../src/shared/text/chain.js';
import { KeyRing } from '../../../src/worker/access/keys.js';
import { loginOf } from '../../support/agents/logins.js';
import { FakeClock } from '../../support/basics/fake-clock.js';
import { type KnownIdentity, pairs, sameNames, shareHolder, shareSpender } from '../../support/basics/identities.js';
import { Exposition } from '../../support/documents/exposition.js';
import { budgetOptions, CountedBudgets } from '../../support/jobs/counted-budgets.js';
import { jobDone, jobRequest } from '../../support/jobs/job-records.js';
import { TestRoom } from '../../support/jobs/test-room.js';
import { deliveryOf } from '../../support/stores/delivery-store-contract.js';

/** Options with one of each: a request, a job, a search and a token. */
const options = {
  ...plainOptions,
  rate: { maxRequests: 1, windowMs: 1000 },
  maxConcurrent: 1,
  featureOptions: { search: '1/day', tokens: '1/day' },
} as const;

const limitsIn = (clients: Clients) => (client: ClientText) =>
  searchLimitsOf(client, (each) => clients.optionsOf(each).featureOptions);

const operatorKey = (name: string): ApiKey => ({ name, digest: digestOf(`operator ${name}`), ...options });
const madeKey = (client: ClientText): AddedKey => {
  return { name: 'ada', client, digest: digestOf(client), ...options, groups: [] };
};

function createClients(): Clients {
  const created = new Clients(
    {
      ...{ rateMaxRequests: 1, rateWindowMs: 1000, needsKey: true, groupLines: [], apiKeys: [] },
      namedKeys: ['ada', 'ada~1'].map(operatorKey),
      personLines: ['ada', 'eve'].map((name) => ({ name, ...options })),
    },
    new FakeClock(),
  );
  const added = ['made ada~1', 'made ada~2', 'sso ada/ada~1', 'sso ada/ada~2', 'sso eve/ada~1'] as const;
  created.replaceAddedKeys(added.map(madeKey));
  return created;
}

const clients = createClients();
const hasOptions = ({ client }: KnownIdentity) => !/^(user|address) /.test(client);

function isRefused(act: () => unknown): boolean {
  try {
    act();
    return false;
  } catch {
    return true;
  }
}

/** Returns the pairs for which something differs from what is expected. */
async function wrongPairs(
  isSeen: (one: KnownIdentity, other: KnownIdentity) => boolean | Promise<boolean>,
  isExpected: (one: KnownIdentity, other: KnownIdentity) => boolean,
): Promise<string[]> {
  const wrong: string[] = [];
  for (const [one, other] of pairs())
    if ((await isSeen(one, other)) !== isExpected(one, other)) wrong.push(`${one.client} | ${other.client}`);
  return wrong;
}

describe('Clients with equal names', () => {
  it('have texts of their own, which name the clients for which their usage counts', () => {
    expect(new Set(sameNames.map(({ client }) => client)).size).toBe(sameNames.length);
    for (const { client, spenders } of sameNames) {
      expect([client, spendersOf(client), holderOf(client)]).toEqual([client, spenders, spenders[0]]);
      expect(writeClientId(readClientId(client))).toBe(client);
    }
  });

  it('share a budget only with their holder', async () => {
    const spend = (one: KnownIdentity, other: KnownIdentity) => {
      const budgets = new CountedBudgets(new FakeClock(), (client) => new LimitedUses(clients).of(client));
      budgets.jobEnded({ client: one.client }, { ...noBill, outputTokens: 1 });
      return isRefused(() => budgets.checkBudget({ client: other.client }));
    };
    expect(await wrongPairs(spend, (one, other) => hasOptions(other) && shareHolder(one, other))).toEqual([]);
  });

  it('share a budget only with their holder after it was read from the store', async () => {
    const spend = async (one: KnownIdentity, other: KnownIdentity) => {
      const [clock, ledger] = [new FakeClock(), new UsageLedger(new FakeClock())];
      ledger.jobEnded(jobRequest({ client: one.client }), jobDone(), { ...noBill, outputTokens: 1 });
      const budgets = new CountedBudgets(clock, (client) => new LimitedUses(clients).of(client));
      await budgets.refresh(ledger);
      return isRefused(() => budgets.checkBudget({ client: other.client }));
    };
    expect(await wrongPairs(spend, (one, other) => hasOptions(other) && shareHolder(one, other))).toEqual([]);
  });

  it('share a rate limit only with their holder', async () => {
    const request = async (one: KnownIdentity, other: KnownIdentity) => {
      const limit = new RateLimit((client) => clients.ratesOf(client), new FakeClock());
      await limit.takeRequest(one.client);
      return !(await limit.takeRequest(other.client)).isAllowed;
    };
    expect(await wrongPairs(request, shareHolder)).toEqual([]);
  });

  it('share web searches only with their holder', async () => {
    const search = { path: 'tools.0' };
    const begin = (one: KnownIdentity, other: KnownIdentity) => {
      const budgets = new CountedBudgets(new FakeClock(), () => []);
      const quota = new SearchQuota('native', limitsIn(clients), budgets, new FakeClock());
      if (!hasOptions(one) || !hasOptions(other)) return false;
      quota.reserve(search, one.client);
      return isRefused(() => quota.check(search, other.client));
    };
    expect(await wrongPairs(begin, (one, other) => hasOptions(one) && shareHolder(one, other))).toEqual([]);
  });

  it('share slots only with their holder', async () => {
    const boundsOf = clientBounds({ clientMaxConcurrent: 1 }, (client) => clients.optionsOf(client));
    const run = (one: KnownIdentity, other: KnownIdentity) => {
      const { room } = new TestRoom({ maxActive: 2, maxWaiting: 2, maxWaitingBytes: 1000 }, boundsOf);
      const entrant = { cli: loginOf('demo'), bytes: 1, lane: 'lane', heldBy: () => null };
      room.admit({ ...entrant, client: one.client });
      return !room.hasSlotFor({ client: other.client, cli: loginOf('demo') });
    };
    expect(await wrongPairs(run, shareSpender)).toEqual([]);
  });

  it('share the quota of files only with their holder, and see no file of another one', async () => {
    const settings = {
      MODEL_API_FILES: 'memory',
      MODEL_API_FILES_MB: 9,
      MODEL_API_MAX_FILES: 1,
      MODEL_API_FILES_TTL_SECONDS: 1000,
    } as const;
    const upload = async (one: KnownIdentity, other: KnownIdentity) => {
      const files = new StoredFiles(memoryStore([]).files, settings, new FakeClock());
      const file = { purpose: 'user_data', name: 'notes', mediaType: 'text/plain' } as const;
      const id = await files.createFile({ ...file, client: one.client });
      await files.completeFile({ id, client: one.client, purpose: 'user_data', lines: 0, ttlMs: null });
      await expect(files.findFile(id, other.client)).rejects.toMatchObject({ code: 'not_found' });
      return files.createFile({ ...file, client: other.client }).then(
        () => false,
        () => true,
      );
    };
    expect(await wrongPairs(upload, shareHolder)).toEqual([]);
  });

  it('are served only by accounts of their own, of their key and of their holder', async () => {
    const serves = (one: KnownIdentity, other: KnownIdentity) =>
      eligibleAccounts(other.client, [{ account: { name: 'x', owners: [one.client] } }], null, () => false).length > 0;
    expect(await wrongPairs(serves, (one, other) => other.spenders.includes(one.client))).toEqual([]);
  });

  it('have the labels of their holder in the metrics; addresses and all others have those of the rest', async () => {
    const count = async (client: ClientText) => {
      const registry = new Registry();
      new ClientMetrics(registry, () => new Map()).countRefusal(client);
      const { samples } = new Exposition(await registry.metrics());
      return JSON.stringify(samples.find(({ name }) => name === 'client_refused_total')?.labels);
    };
    const labels = new Map<string, string>();
    for (const { client } of sameNames) labels.set(client, await count(client));
    const isAddress = ({ client }: KnownIdentity) => client.startsWith('address ');
    const areSame = (one: KnownIdentity, other: KnownIdentity) => labels.get(one.client) === labels.get(other.client);
    const expected = (one: KnownIdentity, other: KnownIdentity) =>
      shareHolder(one, other) || (isAddress(one) && isAddress(other));
    expect(await wrongPairs(areSame, expected)).toEqual([]);
  });

  it('have notices of their own, which name exactly the client', () => {
    const sent: Notice[] = [];
    const budgets = new CountedBudgets(new FakeClock(), () => []);
    const limited = sameNames.filter(hasOptions).filter(({ client, spenders }) => spenders.includes(client));
    for (const { client } of limited) budgets.jobEnded({ client }, { ...noBill, outputTokens: 1 });
    const uses = limited.map(({ client }) => ({
      ...readClientId(client),
      ...{ tokens: { max: 1, period: 'day' as const }, costUsd: null },
      holders: [client],
    }));
    const parts = { clis: [], clock: new FakeClock(), host: 'north' };
    new Notices({
      ...parts,
      send: (notice) => sent.push(notice),
      budgets: () => budgets.usesOf(uses),
    }).checkConditions();
    expect(sent.map(({ client }) => client)).toEqual(limited.map(({ client }) => client));
    expect(new Set(sent.map(({ id }) => id)).size).toBe(limited.length);
  });

  it('have usage of their own, and lose only that in a purge', () => {
    for (const { client: purged } of sameNames) {
      const ledger = new UsageLedger(new FakeClock());
      for (const { client } of sameNames) ledger.countRefusal(client);
      const reported = (client: ClientText) => ledger.report(client, { since: null, until: null }).length;
      ledger.forget(purged);
      expect(sameNames.filter(({ client }) => reported(client) === 0).map(({ client }) => client)).toEqual([purged]);
    }
  });

  it('share the places for pending notices only with their holder', async () => {
    const fill = async (one: KnownIdentity, other: KnownIdentity) => {
      const deliveries = new MemoryTable(deliveryTable);
      for (let index = 0; index < deliveryTable.byClients.maxOfHolder; index++)
        await deliveries.addRow(deliveryOf(`${index}`, { client: one.client }));
      return (await deliveries.addRow(deliveryOf('new', { client: other.client }))).dropped > 0;
    };
    expect(await wrongPairs(fill, shareHolder)).toEqual([]);
  });

  it('share the places for background jobs only with their holder', async () => {
    const wait = (one: KnownIdentity, other: KnownIdentity) => {
      const waiting = new FairShare<Sharer>();
      waiting.addMember({ client: one.client, bytes: 1 }, 0);
      return waiting.holderShare(other.client).count > 0;
    };
    expect(await wrongPairs(wait, shareHolder)).toEqual([]);
  });

  it('share the limit of acts on own keys with nobody', async () => {
    const change = async (one: KnownIdentity, other: KnownIdentity) => {
      const limit = new RateLimit((client) => [{ client, rate: { ...ownActs, maxRequests: 1 } }], new FakeClock());
      await limit.takeRequest(one.client);
      return !(await limit.takeRequest(other.client)).isAllowed;
    };
    expect(await wrongPairs(change, () => false)).toEqual([]);
  });

  it('share a failure only with their holder, and believe only failures of two holders', async () => {
    const fail = (one: KnownIdentity, other: KnownIdentity) => {
      const seen = new SeenClients();
      for (const client of ['key first', 'key second'] as const) seen.recordClient(client);
      return seen.mayAccuse(one.client, other.client);
    };
    expect(await wrongPairs(fail, (one, other) => !shareHolder(one, other))).toEqual([]);
  });

  it('share no renewed process', async () => {
    const tenantFor = ({ client }: KnownIdentity) => ({
      client,
      system: null,
      schema: null,
      offer: null,
      isQuestion: true,
    });
    const serve = (one: KnownIdentity, other: KnownIdentity) => mayServe(tenantFor(one), tenantFor(other));
    expect(await wrongPairs(serve, () => false)).toEqual([]);
  });

  it('have renewed processes, unless several people may be behind an address', () => {
    for (const { client } of [...sameNames, { client: noClient }]) {
      const tenant = tenantOf({ request: jobRequest({ client }), launch: plainLaunch(null), isContinuable: false });
      expect([client, tenant?.client]).toEqual([client, /^(address |$)/.test(client) ? undefined : client]);
    }
  });

  it('have processes of their own', () => {
    expect(new Set(sameNames.map(({ client }) => chainId('chain', client, 'model'))).size).toBe(sameNames.length);
  });

  it('are found by their own keys', () => {
    const ring = new KeyRing();
    ring.setFirstKeys(clients.workerKeys);
    const presented = ['operator ada', 'operator ada~1', 'made ada~1', 'made ada~2', 'sso ada/ada~1', 'sso ada/ada~2'];
    expect(presented.map((each) => ring.find(each)?.client)).toEqual([
      ...['key ada', 'key ada~1', 'made ada~1', 'made ada~2', 'sso ada/ada~1', 'sso ada/ada~2'],
    ]);
  });
});

describe('A person who deletes a key and makes another one', () => {
  const [first, second] = ['sso ada/ada~1', 'sso ada/other~2'] as const;
  const madeKeys = (client: ClientText): AddedKey[] => [
    { ...madeKey(client), featureOptions: { search: '1/day' }, rate: null },
  ];

  it('does not begin budget, rate, searches and files anew', async () => {
    const now = new FakeClock();
    const people = createClients();
    people.replaceAddedKeys(madeKeys(first));
    const budgets = new CountedBudgets(now, (client) => new LimitedUses(people).of(client));
    const limit = new RateLimit((client) => people.ratesOf(client), now);
    const quota = new SearchQuota('native', limitsIn(people), budgets, now);
    budgets.jobEnded({ client: first }, { ...noBill, outputTokens: 1, searches: 1 });
    expect(await limit.takeRequest(first)).toMatchObject({ isAllowed: true });
    people.replaceAddedKeys(madeKeys(second));
    for (const client of [second, 'sso ada'] as const) {
      expect(() => budgets.checkBudget({ client })).toThrow('budget of this person is used up: 1 of 1 tokens');
      expect(await limit.takeRequest(client)).toMatchObject({ isAllowed: false });
      expect(() => quota.check({ path: 'tools.0' }, client)).toThrow('has used its 1 web searches');
    }
  });

  it('keeps a narrower limit of a key, besides those of the person', async () => {
    const people = createClients();
    const wide = {
      ...budgetOptions({ tokens: { max: 9, period: 'day' } }),
      rate: { maxRequests: 9, windowMs: 1000 },
    } as const;
    const content = { keys: [], groupLines: [], personLines: [{ name: 'ada', ...options, ...wide }] };
    people.replaceNamedKeys(content);
    people.replaceAddedKeys([madeKey(first)]);
    const budgets = new CountedBudgets(new FakeClock(), (client) => new LimitedUses(people).of(client));
    budgets.jobEnded({ client: first }, { ...noBill, outputTokens: 1 });
    expect(() => budgets.checkBudget({ client: first })).toThrow('budget of the API key is used up: 1 of 1 tokens');
    budgets.checkBudget({ client: 'sso ada' });
    const limit = new RateLimit((client) => people.ratesOf(client), new FakeClock());
    expect(await limit.takeRequest(first)).toMatchObject({ isAllowed: true, maxRequests: 1, remaining: 0 });
    expect(await limit.takeRequest(first)).toMatchObject({ isAllowed: false });
    expect(await limit.takeRequest('sso ada')).toMatchObject({ isAllowed: true, maxRequests: 9, remaining: 7 });
  });
});

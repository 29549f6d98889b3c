import { Redis } from 'ioredis';
import type { SharedConversations } from '../../../src/features/redis/redis-conversations.js';
import type { AnswerStore } from '../../../src/features/stores/contract/answers.js';
import type { FullStore } from '../../../src/features/stores/contract/full-store.js';
import type { ConversationJournal } from '../../../src/primary/store/contract/conversations.js';
import { withResolvers } from '../../../src/shared/async.js';
import type { ClientText } from '../../../src/shared/client.js';
import { sameNames, shareHolder } from '../../support/basics/identities.js';
import { until } from '../../support/basics/until.js';
import { recordedAnswer } from '../../support/jobs/claims.js';
import { jobRequest, plainForm } from '../../support/jobs/job-records.js';
import { describeAnswerStore } from '../../support/stores/answer-store-contract.js';
import { deliveriesIn, deliveryOf, describeDeliveryStore } from '../../support/stores/delivery-store-contract.js';
import { batchOf, describeFileStore, fileOf } from '../../support/stores/file-store-contract.js';
import { describeIdentities } from '../../support/stores/identity-contract.js';
import { describeJobStore } from '../../support/stores/job-store-contract.js';
import { KeptRun, usualLimits } from '../../support/stores/kept.js';
import { openRedisAt, type RedisServer, startRedis } from '../../support/stores/redis-server.js';
import { describeResponseStore, nodeOf, turnOf } from '../../support/stores/response-store-contract.js';
import { describeSearchQuota } from '../../support/stores/search-quota-contract.js';
import { describeStore, type StorePlaceForTests } from '../../support/stores/store-contract.js';

let server: RedisServer;

beforeAll(async () => {
  server = await startRedis('--appendonly', 'no');
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

function openAt(url: string, { ttlMs, maxConversations } = usualLimits): Promise<FullStore> {
  return openRedisAt(url, { ttlMs, maxConversations, clientShare: maxConversations / 4 });
}

async function emptied(): Promise<StorePlaceForTests> {
  await server.ask('FLUSHALL');
  return { open: (limits) => openAt(server.url, limits), [Symbol.asyncDispose]: async () => {} };
}

describeStore('Redis', true, emptied);
describeJobStore('Redis', true, emptied);
describeAnswerStore('Redis', { isDurable: true, isShared: true }, emptied);
describeResponseStore('Redis', { isDurable: true, isShared: true }, emptied);
describeDeliveryStore('Redis', true, emptied);
describeFileStore('Redis', true, emptied);
describeSearchQuota('Redis', { isDurable: true, isShared: true }, emptied);
describeIdentities('Redis', emptied);

it('Rows of the table of deliveries have the keys that hosts of earlier versions read', async () => {
  await server.ask('FLUSHALL');
  const store = await openAt(server.url);
  const delivery = deliveryOf('a', { client: 'key ada/eve' });
  await deliveriesIn(store).addRow(delivery);
  await store.close();
  const keys = ['deliveries', 'deliveries:due', 'deliveries:of:key ada', 'delivery:a'];
  expect((await server.ask('KEYS', '*deliver*')) as string[]).toEqual(
    expect.arrayContaining(keys.map((key) => `prompt-relay:${key}`)),
  );
  const fields = await server.ask('HMGET', 'prompt-relay:delivery:a', 'client', 'share', 'record');
  expect(fields).toEqual(['key ada/eve', 'key ada', JSON.stringify(delivery)]);
});

it('A page of files or batches is read without the entries behind it', async () => {
  await server.ask('FLUSHALL');
  const store = await openAt(server.url);
  const page = { client: 'key ada' as const, after: null, limit: 5 };
  for (let count = 0; count < 300; count++) {
    await store.files.createFile(fileOf(`file ${count}`));
    await store.files.completeFile(`file ${count}`, { purpose: 'batch', lines: 1, expiresAt: Date.now() + 60_000 });
    await store.files.addBatch(batchOf(`batch ${count}`));
  }
  const reads = await listReads(async () => {
    for (const isAscending of [true, false]) {
      await store.files.listFiles({ ...page, isAscending }, ['batch']);
      await store.files.listBatches({ ...page, isAscending }, ['chat']);
    }
  });
  const lengths: number[] = [];
  for (const read of reads) lengths.push(((await server.ask(...read)) as unknown[]).length);
  await store.close();
  expect(lengths).toHaveLength(4);
  expect(Math.max(...lengths)).toBeLessThanOrEqual(100); // 50 entries with their scores
});

/** Returns the commands by which scripts read lists during the work. */
async function listReads(work: () => Promise<void>): Promise<string[][]> {
  const reads: string[][] = [];
  const redis = new Redis(server.url);
  const monitor = await redis.monitor();
  const isSeen = withResolvers();
  monitor.on('monitor', (_: string, command: string[], source: string) => {
    if (command[0]?.toLowerCase() === 'echo') isSeen.resolve();
    else if (source === 'lua' && /^z(rev)?range/i.test(command[0] ?? '')) reads.push(command);
  });
  await work();
  await server.ask('ECHO', 'the end');
  await isSeen.promise;
  monitor.disconnect();
  redis.disconnect();
  return reads;
}

it('A host without figures can read a turn of a host with figures, and the reverse', async () => {
  await server.ask('FLUSHALL');
  const store = await openAt(server.url);
  const run = new KeptRun(store.conversations, {}, store.conversations as ConversationJournal & SharedConversations);
  const id = await run.chat(null, 'Hi', 'Hello', { figures: '{"model":"eliza 2"}' });
  const [turn] = (await server.ask('LRANGE', `prompt-relay:turns:${id}`, '0', '-1')) as string[];
  await store.close();
  // Older hosts read three words of the line.
  expect(turn?.split('\n')).toEqual(['7 0 2 {"model":"eliza 2"}', 'HiHello']);
  await server.ask('LSET', `prompt-relay:turns:${id}`, '0', '7 0 2\nHiHello');
  const next = await openAt(server.url);
  const reader = new KeptRun(next.conversations, {}, next.conversations as ConversationJournal & SharedConversations);
  expect((await reader.all())[0]?.transcript).toEqual([
    { type: 'message', role: 'user' },
    { type: 'text', text: 'Hi' },
    { type: 'message', role: 'assistant' },
    { type: 'text', text: 'Hello' },
  ]);
  await next.close();
});

it('A job is not replaced by a job with the same id, which another host sends', async () => {
  await server.ask('FLUSHALL');
  const store = await openAt(server.url);
  const job = { id: 'same', title: 'Hi', form: plainForm, createdAt: Date.now(), request: jobRequest() };
  try {
    await store.jobs.accept(job);
    await store.jobs.startJob(job.id, Date.now());
    await expect(store.jobs.accept(job)).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(await store.jobs.findJob(job.id, null)).toMatchObject({ status: 'running' });
    await store.jobs.accept({ ...job, id: 'other' });
  } finally {
    await store.close();
  }
});

it('Clients with equal names share the places for background jobs only with their holder', async () => {
  const wrong: string[] = [];
  for (const one of sameNames) {
    await server.ask('FLUSHALL');
    const limits = { ...usualLimits, clientShare: 1 };
    const store = await openRedisAt(server.url, limits, { maxJobs: 4, maxBytes: 1e6, ttlMs: 60_000 });
    const accept = (id: string, client: ClientText) =>
      store.jobs.accept({ id, title: 'Hi', form: plainForm, createdAt: Date.now(), request: jobRequest({ client }) });
    for (const id of ['first', 'second', 'third']) await accept(id, one.client);
    for (const other of sameNames) {
      const isRefused = await accept('fourth', other.client).then(
        () => false,
        (error: Error) => /of this client wait/.test(error.message),
      );
      await store.jobs.removeJob('fourth');
      if (isRefused !== shareHolder(one, other)) wrong.push(`${one.client} | ${other.client}`);
    }
    await store.close();
  }
  expect(wrong).toEqual([]);
});

describe('Responses on two hosts', () => {
  it('are continued by either host, and damage is detected', async () => {
    await server.ask('FLUSHALL');
    const [one, other] = [await openAt(server.url), await openAt(server.url)];
    const limits = { maxResponses: 10, maxBytes: 100_000, ttlMs: 60_000 };
    const key = { id: 'b', client: 'key ada' as const };
    try {
      await one.responses.putResponse(nodeOf('a'), limits);
      await other.responses.putResponse(nodeOf('b', 'a'), limits);
      expect(await one.responses.readMessages(key, 0)).toEqual([...turnOf('a'), ...turnOf('b')]);
      await one.responses.expireResponses(0);
      expect(one.responses.counts.count).toBe(2);
      await server.ask('DEL', 'prompt-relay:response:a');
      expect([
        await other.responses.readMessages(key, 0),
        await one.responses.putResponse(nodeOf('c', 'b'), limits),
      ]).toEqual([null, 'gone']);
      const { faults } = await one.upkeep.verify({ conversationTtlMs: 0, jobTtlMs: 0 });
      expect(faults).toEqual(expect.arrayContaining(['the text of response b is not whole']));
      expect(faults.join()).toContain('prompt-relay:responses has 1 entries that point to nothing');
    } finally {
      for (const store of [one, other]) await store.close();
    }
  });
});

describe('Idempotency keys on two hosts', () => {
  const mine = { client: 'key ada' as const, key: 'k' } as const;
  const kept = { digest: 'd', answer: recordedAnswer('told once') } as const;

  async function twoHosts(test: (one: AnswerStore, other: AnswerStore) => Promise<void>): Promise<void> {
    await server.ask('FLUSHALL');
    const stores = [await openAt(server.url), await openAt(server.url)] as const;
    try {
      await test(stores[0].answers, stores[1].answers);
    } finally {
      for (const store of stores) await store.close();
    }
  }

  it('are granted to one host, and both have its answer', () =>
    twoHosts(async (one, other) => {
      const taken = await Promise.all([one, other].map((host) => host.claimOrFind(mine, 'd', 0)));
      expect(taken.map(({ type }) => type).toSorted()).toEqual(['free', 'held']);
      const [winner, loser] = taken[0]?.type === 'free' ? [one, other] : [other, one];
      expect(await loser.claimOrFind(mine, 'other', 0)).toEqual({ type: 'held', digest: 'd' });
      await winner.keep(mine, kept, 0);
      for (const host of [one, other])
        expect(await host.claimOrFind(mine, 'd', 0)).toMatchObject({ type: 'answered', digest: 'd' });
    }));

  it('are free for the other host when released, and a late answer does not block them', () =>
    twoHosts(async (one, other) => {
      await one.claimOrFind(mine, 'd', 0);
      one.releaseKey(mine);
      await until(async () => (await other.claimOrFind(mine, 'other', 0)).type === 'free', 'the key to be free');
      await expect(one.keep(mine, kept, 0)).rejects.toThrow('another host has the key');
      await other.keep(mine, { ...kept, digest: 'other' }, 0);
      expect(await one.claimOrFind(mine, 'd', 0)).toMatchObject({ type: 'answered', digest: 'other' });
    }));

  it('expire soon after a host has died, and answers after a day', () =>
    twoHosts(async (one) => {
      const ttlOf = async () => {
        const [place] = (await server.ask('KEYS', '*:answer:*')) as string[];
        return Number(await server.ask('PTTL', place ?? ''));
      };
      await one.claimOrFind(mine, 'd', 0);
      expect(await ttlOf()).toBeLessThanOrEqual(10_000);
      await one.keep(mine, kept, 0);
      const day = 86_400_000;
      expect(Math.abs((await ttlOf()) - day)).toBeLessThan(60_000);
    }));

  it('remain reserved after Redis lost them, as long as the request runs', () =>
    twoHosts(async (one, other) => {
      await one.claimOrFind(mine, 'd', 0);
      await server.ask('FLUSHALL');
      await server.end(); // simulates a hang longer than the lifetime of keys
      await server.start();
      await until(
        async () => ((await server.ask('KEYS', '*:answer:*')) as string[]).length === 1,
        'the key to be held',
      );
      const again = await until(() => other.claimOrFind(mine, 'd', 0).catch(() => null), 'the other host to be back');
      expect(again).toEqual({ type: 'held', digest: 'd' });
      await one.keep(mine, kept, 0);
      expect(await other.claimOrFind(mine, 'd', 0)).toMatchObject({ type: 'answered' });
    }));

  it('fail without a long wait if Redis hangs', () =>
    twoHosts(async (one) => {
      server.stop();
      try {
        const begunMs = performance.now();
        await expect(one.claimOrFind(mine, 'd', 0)).rejects.toThrow('has not answered for 200 ms');
        expect(performance.now() - begunMs).toBeLessThan(5000);
      } finally {
        server.goOn();
      }
    }));
});

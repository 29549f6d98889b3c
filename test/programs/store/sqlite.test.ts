import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { prepareFile } from '../../../src/features/sqlite/files.js';
import { connectTo } from '../../../src/features/sqlite/node-sqlite.js';
import { migrations } from '../../../src/features/sqlite/schema.js';
import { SqliteStore } from '../../../src/features/sqlite/sqlite-store.js';
import { SqliteThread } from '../../../src/features/sqlite/sqlite-thread.js';
import type { FullStore } from '../../../src/features/stores/contract/full-store.js';
import { openTable, undeclaredKeepMs } from '../../../src/features/stores/contract/tables.js';
import type { UsageDelta } from '../../../src/features/stores/contract/usage.js';
import { deliveryTable } from '../../../src/features/webhooks/deliveries.js';
import type { StoreTable } from '../../../src/primary/store/contract/store-table.js';
import type { ClientText } from '../../../src/shared/client.js';
import { systemClock } from '../../../src/shared/clock.js';
import { outcomes } from '../../../src/shared/job.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { recordedAnswer } from '../../support/jobs/claims.js';
import { describeAnswerStore } from '../../support/stores/answer-store-contract.js';
import { deliveriesIn, deliveryOf, describeDeliveryStore } from '../../support/stores/delivery-store-contract.js';
import { describeFileStore } from '../../support/stores/file-store-contract.js';
import { describeIdentities } from '../../support/stores/identity-contract.js';
import { describeJobStore } from '../../support/stores/job-store-contract.js';
import { KeptRun } from '../../support/stores/kept.js';
import { describeResponseStore } from '../../support/stores/response-store-contract.js';
import { describeSearchQuota } from '../../support/stores/search-quota-contract.js';
import { describeStore, type StorePlaceForTests } from '../../support/stores/store-contract.js';

async function openAt(path: string, steps = migrations, clock = systemClock): Promise<FullStore> {
  await prepareFile(path);
  const thread = new SqliteThread(path, [deliveryTable], steps);
  await thread.startThread();
  return new SqliteStore(path, thread, [deliveryTable], clock);
}

function fileIn(folder: TemporaryFolder): string {
  return join(folder.path, 'store.db');
}

async function placeInFolder(): Promise<StorePlaceForTests> {
  const folder = await temporaryFolder();
  return {
    open: () => openAt(fileIn(folder)),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

describeStore('SQLite', true, placeInFolder);
describeJobStore('SQLite', true, placeInFolder);
describeAnswerStore('SQLite', { isDurable: true }, placeInFolder);
describeResponseStore('SQLite', { isDurable: true }, placeInFolder);
describeDeliveryStore('SQLite', true, placeInFolder);
describeFileStore('SQLite', true, placeInFolder);
describeSearchQuota('SQLite', { isDurable: true }, placeInFolder);
describeIdentities('SQLite', placeInFolder);

/** Returns all bytes of all files in a folder. */
async function bytesIn(folder: TemporaryFolder): Promise<string> {
  const names = await readdir(folder.path);
  const files = await Promise.all(names.map((name) => readFile(join(folder.path, name), 'latin1')));
  return files.join('');
}

it('Purged answers of a client use no space', async () => {
  await using folder = await temporaryFolder();
  const store = await openAt(fileIn(folder));
  const answer = recordedAnswer('x'.repeat(1024 * 1024));
  const keep = async (client: ClientText, count: number) => {
    for (let n = 0; n < count; n++)
      await store.answers.keep({ client, key: String(n) }, { digest: 'a digest', answer }, n);
  };
  await keep('key gone', 33);
  const purged = await store.upkeep.purge('key gone');
  await keep('key left', 40);
  const first = await store.answers.claimOrFind({ client: 'key left', key: '0' }, 'a digest', 0);
  await store.close(); // a failed test must not leave the thread running
  expect([purged.idempotency, first.type]).toEqual([33, 'answered']);
});

it('A conversation and its fork survive a turn with a clock that was set back', async () => {
  await using folder = await temporaryFolder();
  let isSetBack = false;
  const clock = { ...systemClock, now: () => (isSetBack ? 0 : systemClock.now()) };
  const store = await openAt(fileIn(folder), migrations, clock);
  const run = new KeptRun(store.conversations);
  const id = await run.chat(null, 'one', 'eins');
  isSetBack = true;
  await run.chat(id, 'two', 'zwei');
  const fork = {
    id: 'fork',
    client: 'key alice' as const,
    origin: id,
    origins: `${id} 2`,
    messageCount: 2,
    createdAt: 0,
  };
  await store.conversations.commitChange({ type: 'fork', ...fork });
  await store.close();
  const next = await openAt(fileIn(folder));
  expect(await new KeptRun(next.conversations).restore()).toBe(2);
  await next.close();
});

it('A row whose client is not one harms no other row', async () => {
  await using folder = await temporaryFolder();
  const store = await openAt(fileIn(folder));
  const run = new KeptRun(store.conversations);
  for (const text of ['one', 'two']) await run.chat(null, text, text);
  await store.close();
  const sql = connectTo(fileIn(folder));
  sql.exec("UPDATE conversations SET client = 'nobody' WHERE key = (SELECT min(key) FROM conversations)");
  for (const client of ['nobody', 'key alice'])
    sql.exec(`INSERT INTO usage VALUES ('2026-01-01', '${client}', '', '', '{}', '{}')`);
  sql.close();
  const next = await openAt(fileIn(folder));
  const usage: UsageDelta[] = [];
  for await (const row of next.usage.restoreUsage()) usage.push(row);
  const conversations = await new KeptRun(next.conversations).restore();
  await next.close();
  expect([usage.map(({ client }) => client), conversations]).toEqual([['key alice'], 1]);
});

describe('The files of SQLite', () => {
  it('lose old rows of a table that no feature declares any more', async () => {
    await using folder = await temporaryFolder();
    const table = { ...deliveryTable, name: 'parcels', rowName: 'parcel' };
    const path = fileIn(folder);
    const open = async (tables: readonly StoreTable[]) => {
      const thread = new SqliteThread(path, tables, migrations);
      await prepareFile(path);
      await thread.startThread();
      return new SqliteStore(path, thread, tables, systemClock);
    };
    const before = await open([table]);
    for (const createdAt of [1, 2])
      await openTable(before.tables, table).addRow(deliveryOf(`${createdAt}`, { createdAt }));
    await before.close();
    const store = await open([deliveryTable]);
    await deliveriesIn(store).addRow(deliveryOf('open', { createdAt: 1 }));
    const rowsAfter = async (now: number) => {
      await store.upkeep.expireRows(now);
      return (await store.upkeep.verify({ conversationTtlMs: 0, jobTtlMs: 0 })).rows;
    };
    expect(await rowsAfter(1 + undeclaredKeepMs)).toMatchObject({ parcels: 2, deliveries: 1 });
    expect(await rowsAfter(2 + undeclaredKeepMs)).toMatchObject({ parcels: 1, deliveries: 1 });
    await store.close();
  });

  it('may have a declared table that a migration of an earlier version has created, with its rows', async () => {
    await using folder = await temporaryFolder();
    await (await openAt(fileIn(folder))).close();
    const sql = connectTo(fileIn(folder));
    sql.exec(`DROP TABLE deliveries;
      CREATE TABLE deliveries (
     number INTEGER PRIMARY KEY AUTOINCREMENT,
     id TEXT NOT NULL UNIQUE,
     client TEXT NOT NULL,
     created_at INTEGER NOT NULL,
     next_at INTEGER,
     record TEXT NOT NULL
   ) STRICT;
   CREATE INDEX deliveries_due ON deliveries (next_at) WHERE next_at IS NOT NULL;`);
    const { id, client, createdAt, nextAt, ...rest } = deliveryOf('old', { client: 'key ada' });
    const row = [id, client, createdAt, nextAt, JSON.stringify({ id, client, createdAt, nextAt, ...rest })];
    sql.prepare('INSERT INTO deliveries VALUES (1, ?, ?, ?, ?, ?)').run(...row);
    sql.close();
    const store = await openAt(fileIn(folder));
    const deliveries = deliveriesIn(store);
    const [taken] = await deliveries.take(nextAt ?? 0, createdAt + 1, 9);
    await deliveries.addRow(deliveryOf('new', { client: 'key ada' }));
    const ids = (await deliveries.listRows(9)).map((each) => each.id);
    await store.close();
    expect([taken, ids]).toEqual([deliveryOf('old', { client: 'key ada' }), ['new', 'old']]);
  });

  it('are accessible only to their owner', async () => {
    await using folder = await temporaryFolder();
    const store = await openAt(fileIn(folder));
    await new KeptRun(store.conversations).chat(null, 'Hi', 'Hello');
    const names = (await readdir(folder.path)).toSorted();
    expect(names).toEqual(['store.db', 'store.db-wal', 'store.db.pid']);
    for (const name of names) expect((await stat(join(folder.path, name))).mode & 0o777).toBe(0o600);
    await store.close();
    expect(await readdir(folder.path)).toEqual(['store.db']);
  });

  it('are not created by SQLite itself, which would make them readable for others', async () => {
    await using folder = await temporaryFolder();
    await expect(new SqliteThread(fileIn(folder), []).startThread()).rejects.toThrow('cannot be opened: ENOENT');
    expect(await readdir(folder.path)).toEqual([]);
  });

  it('contain no removed text, and release its space', async () => {
    await using folder = await temporaryFolder();
    const store = await openAt(fileIn(folder));
    const run = new KeptRun(store.conversations);
    const secret = 'wombat '.repeat(100_000);
    const id = await run.chat(null, secret, 'wombat', { system: 'wombat' });
    await run.chat(null, 'capybara', 'Hello');
    expect(await bytesIn(folder)).toContain('wombat');
    await run.conversations.removeConversation(id, 'key alice');
    await until(async () => !(await bytesIn(folder)).includes('wombat'), 'the text to be gone');
    expect(await bytesIn(folder)).toContain('capybara');
    await until(async () => (await bytesIn(folder)).length < secret.length, 'the room to be given back');
    await store.close();
  });

  it('can be used by one thread at a time', async () => {
    await using folder = await temporaryFolder();
    const path = fileIn(folder);
    const first = await openAt(path);
    await expect(openAt(path)).rejects.toThrow(`${path} is in use by process ${process.pid}`);
    await first.close();
    await (await openAt(path)).close();
  });

  it('are migrated to a new version, after a copy', async () => {
    await using folder = await temporaryFolder();
    const path = fileIn(folder);
    const before = migrations.slice(0, 1);
    await (await openAt(path, before)).close();
    const sql = connectTo(path);
    sql.exec(`INSERT INTO conversations VALUES (1, 'a', 'key alice', NULL, ${Date.now()}, ${Date.now()}, 1);
      INSERT INTO turns VALUES (1, 1, CAST('Hi' AS BLOB), CAST('Hello' AS BLOB), NULL, 7)`);
    sql.close();
    const store = await openAt(path);
    const run = new KeptRun(store.conversations);
    expect(await run.restore()).toBe(1);
    await run.chat('a', 'More', 'Mehr', { figures: '{"model":"eliza"}' });
    expect((await run.all())[0]?.transcript.filter(({ type }) => type === 'message')).toEqual([
      { type: 'message', role: 'user' },
      { type: 'message', role: 'assistant' },
      { type: 'message', role: 'user' },
      { type: 'message', role: 'assistant', figures: { model: 'eliza' } },
    ]);
    await store.close();
    const copy = `${path}.version-1`;
    expect((await stat(copy)).mode & 0o777).toBe(0o600);
    const copied = await openAt(copy, before);
    expect(await new KeptRun(copied.conversations).restore()).toBe(1);
    await copied.close();
    const fault = `belongs to a newer prompt-relay (version ${migrations.length}, this one knows 1)`;
    await expect(openAt(path, before)).rejects.toThrow(`${fault}; ${copy} is the copy from before the update`);
    await rm(copy);
    await expect(openAt(path, before)).rejects.toThrow(new RegExp(`${fault.replace(/[()]/g, '\\$&')}$`));
  });

  it('have jobs without a title if these were accepted before titles existed', async () => {
    await using folder = await temporaryFolder();
    const path = fileIn(folder);
    await (await openAt(path, migrations.slice(0, 5))).close();
    const sql = connectTo(path);
    sql.exec(`INSERT INTO jobs (id, client, operation, request_id, form, request, status, created_at)
      VALUES ('j1', 'key a', 'ask', 'r', '{}', '{}', 'queued', 1)`);
    sql.close();
    const store = await openAt(path);
    expect(await store.jobs.findJob('j1', 'key a')).toMatchObject({ id: 'j1', title: '', status: 'queued' });
    for await (const job of store.jobs.restoreJobs(2)) expect(job).toMatchObject({ id: 'j1', title: '' });
    await store.close();
  });

  it('are unchanged if a migration fails', async () => {
    await using folder = await temporaryFolder();
    const path = fileIn(folder);
    await (await openAt(path)).close();
    const broken = [
      ...migrations,
      'CREATE TABLE more (id INTEGER PRIMARY KEY) STRICT; INSERT INTO nowhere VALUES (1);',
    ];
    await expect(openAt(path, broken)).rejects.toThrow('no such table: nowhere');
    const store = await openAt(path);
    expect(await new KeptRun(store.conversations).restore()).toBe(0);
    await store.close();
  });

  it('must be a database of this program', async () => {
    await using folder = await temporaryFolder();
    const path = fileIn(folder);
    await writeFile(path, 'This is a letter, and no database. '.repeat(100), { mode: 0o600 });
    await expect(openAt(path)).rejects.toThrow(`${path} is not a database`);
    const foreign = join(folder.path, 'foreign.db');
    await prepareFile(foreign);
    const sql = connectTo(foreign);
    sql.exec('CREATE TABLE letters (id INTEGER)');
    sql.close();
    await expect(openAt(foreign)).rejects.toThrow('is a database, but not of prompt-relay');
  });
});

describe('Usage in a file', () => {
  const jobs = Object.fromEntries(outcomes.map((outcome) => [outcome, 0])) as UsageDelta['jobs'];
  const row = {
    ...{ client: 'key alice' as const, model: 'opus', account: '' },
    jobs: { ...jobs, ok: 1 },
    refused: 2,
    ...{ inputTokens: 3, cachedTokens: 1, cacheWriteTokens: 2, outputTokens: 4, searches: 3 },
    modelMs: 0.5,
  };

  const earlierFigures = { refused: 2, inputTokens: 3, cachedTokens: 1, outputTokens: 4, modelMs: 0.5 };

  async function usageIn(store: FullStore): Promise<UsageDelta[]> {
    const rows: UsageDelta[] = [];
    for await (const each of store.usage.restoreUsage()) rows.push(each);
    return rows;
  }

  it('is summed up, counts no batch twice, and distinguishes an unknown cost from a cost of 0', async () => {
    await using folder = await temporaryFolder();
    const store = await openAt(fileIn(folder));
    const today = new Date().toISOString().slice(0, 10);
    const batch = [{ ...row, day: today, costUsd: null }];
    await store.usage.addUsage(batch);
    await store.usage.addUsage(batch);
    expect(await usageIn(store)).toEqual([{ ...row, day: today, costUsd: null }]);
    await store.usage.addUsage([
      { ...row, day: today, costUsd: 0.25 },
      { ...row, day: today, model: 'haiku', account: 'team', costUsd: 1 },
      { ...row, day: today, client: 'user bob', costUsd: 0 },
    ]);
    await store.close();
    const again = await openAt(fileIn(folder));
    const tokens = { inputTokens: 6, cachedTokens: 2, cacheWriteTokens: 4, outputTokens: 8, searches: 6 };
    const sums = { jobs: { ...jobs, ok: 2 }, refused: 4, ...tokens, modelMs: 1 };
    expect(await usageIn(again)).toEqual([
      { ...row, day: today, model: 'haiku', account: 'team', costUsd: 1 },
      { ...row, day: today, ...sums, costUsd: 0.25 },
      { ...row, day: today, client: 'user bob', costUsd: 0 },
    ]);
    await again.close();
  });

  it('is added to its month after 90 days, once, and deleted after 24 months', async () => {
    await using folder = await temporaryFolder();
    const clock = { ...systemClock, now: () => Date.parse('2026-11-27T12:00:00Z') };
    const store = await openAt(fileIn(folder), migrations, clock);
    const rowOf = (day: string, more: Partial<UsageDelta> = {}) => ({ ...row, day, costUsd: 0.5, ...more });
    const days = ['2024-11-30', '2024-12-01', '2026-08-01', '2026-08-29', '2026-08-30', '2026-11-27'];
    await store.usage.addUsage([...days.map((day) => rowOf(day)), rowOf('2026-08-29', { model: 'haiku' })]);
    await store.usage.addUsage([rowOf('2026-11-27')]);
    await store.close();
    const again = await openAt(fileIn(folder), migrations, clock);
    await again.usage.addUsage([rowOf('2026-08-28')]);
    const stored = await usageIn(again);
    expect(stored.map(({ day, model, jobs: { ok }, costUsd }) => [day, model, ok, costUsd])).toEqual([
      ['2024-12', 'opus', 1, 0.5],
      ['2026-08', 'haiku', 1, 0.5],
      ['2026-08', 'opus', 3, 1.5],
      ['2026-08-30', 'opus', 1, 0.5],
      ['2026-11-27', 'opus', 2, 1],
    ]);
    expect((await again.upkeep.purge('key alice')).usage).toBe(5);
    await again.close();
  });

  it.each([
    ['models', 8, `'{"ok":1}', 2, 3, 4, NULL, 0.5`, { model: '', cachedTokens: 0 }],
    ['tokens written to the cache', 11, `'opus', '', '{"ok":1}', 2, 3, 1, 4, NULL, 0.5`, {}],
    ['web searches', 12, `'opus', '', '{"ok":1}', 2, 3, 1, 4, NULL, 0.5, 0`, {}],
    ['some figures', 15, `'opus', '', '{"ok":1}', '${JSON.stringify(earlierFigures)}'`, {}],
  ])('of a version without %s has none', async (_, version, values, missing) => {
    await using folder = await temporaryFolder();
    const path = fileIn(folder);
    await (await openAt(path, migrations.slice(0, version))).close();
    const sql = connectTo(path);
    const today = new Date().toISOString().slice(0, 10);
    sql.exec(`INSERT INTO usage VALUES ('${today}', 'key alice', ${values})`);
    sql.close();
    const store = await openAt(path);
    const old = { ...row, day: today, ...missing, jobs: { ok: 1 }, cacheWriteTokens: 0, searches: 0, costUsd: null };
    expect(await usageIn(store)).toEqual([old]);
    await store.usage.addUsage([{ ...row, day: today, ...missing, costUsd: null }]);
    expect(await usageIn(store)).toMatchObject([{ jobs: { ok: 2 }, cacheWriteTokens: 2, searches: 3 }]);
    await store.close();
  });
});

describe('Changes that share a transaction', () => {
  it('fail independently of each other', async () => {
    await using folder = await temporaryFolder();
    const path = fileIn(folder);
    const store = await openAt(path);
    const turn = {
      type: 'turn',
      client: 'key alice' as const,
      system: null,
      createdAt: 1,
      images: [],
      figures: null,
      totalTokens: 1,
    } as const;
    const said = { messageCount: 2, user: 'Hi', assistant: 'Hello' };
    const { conversations } = store;
    const ends = await Promise.allSettled([
      conversations.commitChange({ ...turn, ...said, id: 'a' }),
      conversations.commitChange({
        type: 'fork',
        client: 'key alice',
        id: 'b',
        origin: 'nothing',
        origins: null,
        messageCount: 2,
        createdAt: 1,
      }),
      conversations.commitChange({ ...turn, ...said, id: 'c' }),
      conversations.commitChange({ ...turn, ...said, id: 'a' }), // the turn exists already: a defect of the caller
      conversations.commitChange({
        type: 'fork',
        client: 'key alice',
        id: 'd',
        origin: 'a',
        origins: null,
        messageCount: 2,
        createdAt: 1,
      }),
    ]);
    expect(ends.map((end) => (end.status === 'fulfilled' ? 'kept' : end.reason.code))).toEqual([
      ...['kept', 'not_found', 'kept', 'store_unavailable', 'kept'],
    ]);
    await store.close();
    const again = await openAt(path);
    const ids: string[] = [];
    for await (const { id } of again.conversations.restoreConversations(0)) ids.push(id);
    expect(ids).toEqual(['a', 'c', 'd']);
    await again.close();
  });
});

describe('Many conversations', () => {
  it('are loaded in a few seconds, without blocking the event loop', async () => {
    await using folder = await temporaryFolder();
    const path = fileIn(folder);
    const count = 100_000;
    const store = await openAt(path);
    await fill(store, count);
    await store.close();
    const again = await openAt(path);
    const run = new KeptRun(again.conversations, { maxConversations: count });
    const lag = watchLag();
    const begunMs = performance.now();
    expect(await run.restore()).toBe(count);
    const tookMs = performance.now() - begunMs;
    process.stderr.write(
      `${count} conversations in ${Math.round(tookMs)} ms, longest turn of the loop ${lag.stop()} ms\n`,
    );
    await again.close();
    expect(tookMs).toBeLessThan(20_000);
  });
});

async function fill({ conversations }: FullStore, count: number): Promise<void> {
  const now = Date.now();
  const text = 'What is the answer to everything? '.repeat(3);
  for (let begun = 0; begun < count; begun += 5000) {
    const ids = Array.from({ length: 5000 }, (_, index) => `conversation-${begun + index}`);
    const turn = {
      client: 'key alice' as const,
      system: null,
      createdAt: now,
      images: [],
      figures: null,
      totalTokens: 9,
    } as const;
    const said = { user: text, assistant: text, messageCount: 2 };
    await Promise.all(ids.map((id) => conversations.commitChange({ type: 'turn', id, ...turn, ...said })));
  }
}

/** Measures the longest time in milliseconds for which the event loop was blocked. */
function watchLag() {
  let longest = 0;
  let last = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    longest = Math.max(longest, now - last - 1);
    last = now;
  }, 1);
  return {
    stop: () => {
      clearInterval(timer);
      return Math.round(longest);
    },
  };
}

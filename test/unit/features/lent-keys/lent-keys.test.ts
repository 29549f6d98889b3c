import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { LentKeys, lendingRate } from '../../../../src/features/lent-keys/lent-keys.js';
import { maxOfClient } from '../../../../src/features/lent-keys/shared.js';
import type { SharedText } from '../../../../src/features/stores/contract/shared-text.js';
import { Clients } from '../../../../src/primary/access/clients.js';
import { RateLimit } from '../../../../src/primary/access/rate-limit.js';
import type { OperatorAct } from '../../../../src/shared/acts.js';
import type { ClientText } from '../../../../src/shared/client.js';
import { type ApiKey, digestOf, plainOptions } from '../../../../src/shared/config/api-keys.js';
import { storeUnavailable } from '../../../../src/shared/errors.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { type TemporaryFolder, temporaryFolder } from '../../../support/basics/folder.js';
import { LogBook } from '../../../support/basics/log-book.js';

const hour = 3_600_000;
const actor = (client: ClientText, isAdmin = false) => ({ client, isAdmin, requestId: 'request-1' });
const ada: ApiKey = { name: 'ada', digest: digestOf('of ada'), ...plainOptions };
const root: ApiKey = { name: 'root', digest: digestOf('of root'), ...plainOptions, scopes: ['ask', 'chat', 'admin'] };

let folder: TemporaryFolder;
beforeEach(async () => {
  folder = await temporaryFolder();
});
afterEach(() => folder[Symbol.asyncDispose]());

interface Options {
  readonly keys?: readonly ApiKey[];
  readonly shared?: SharedText;
  readonly maxMs?: number;
  readonly isAuditBroken?: boolean;
  readonly clock?: FakeClock;
}

async function createKeys({ keys = [ada, root], maxMs = 24 * hour, ...options }: Options = {}) {
  const { shared = null, isAuditBroken = false, clock = new FakeClock() } = options;
  const settings = { apiKeys: [], namedKeys: keys, groupLines: [], personLines: [], needsKey: true };
  const clients = new Clients({ ...settings, rateMaxRequests: 0, rateWindowMs: 1000 }, clock);
  const [acts, log]: [OperatorAct[], LogBook] = [[], new LogBook()];
  const path = join(folder.path, 'state', 'lent-keys.json');
  const lent = new LentKeys({
    ...{ clients, shared, clock, log, maxMs, path: shared === null ? path : null },
    sendKeys: async () => {},
    beforeAct: async (act) => {
      if (isAuditBroken) throw storeUnavailable('the audit file cannot be written');
      acts.push(act);
    },
    limit: new RateLimit((client) => [{ client, rate: lendingRate }], clock),
  });
  await lent.refresh();
  const lend = (seconds = 3600, key = ada, isAdmin = false) =>
    lent.lend({ by: actor(`key ${key.name}`, isAdmin), lentId: null, digest: key.digest, seconds });
  const rightsOf = (key: string) => clients.workerKeys.keys?.find(({ digest }) => digest === digestOf(key));
  return { lent, lend, clients, rightsOf, acts, log, clock, path };
}

const idsOf = (keys: readonly { readonly id: string }[]) => keys.map(({ id }) => id);

describe('A lent key', () => {
  it('acts for its lender without the rights of an administrator, and is stored and audited without the key', async () => {
    const { lend, rightsOf, acts, log, path, clients } = await createKeys();
    const { key, id, expires_at } = await lend(3600, root, true);
    expect(rightsOf(key)).toMatchObject({
      client: 'key root',
      scopes: ['ask', 'chat'],
      lentId: id,
      hasSubclients: false,
    });
    expect(acts).toEqual([
      { act: 'key_lent', by: 'key root', target: `${id} until ${expires_at}`, request_id: 'request-1' },
    ]);
    expect(JSON.stringify([acts, log.entries, await readFile(path, 'utf8')])).not.toContain(key);
    expect(clients.hasDigest(digestOf(key))).toBe(true); // so that programs cannot print it
  });

  it('ends at its time, and is then forgotten', async () => {
    const { lent, lend, rightsOf, clock, path } = await createKeys();
    const { key } = await lend(3600);
    expect(rightsOf(key)?.expiresAt).toBe(clock.now() + hour);
    await clock.advance(hour - 1);
    await lent.refresh();
    expect(rightsOf(key)).toBeDefined();
    await clock.advance(1);
    expect(lent.list({ by: actor('key ada'), lentId: null })).toEqual([]);
    await lent.refresh();
    expect([rightsOf(key), JSON.parse(await readFile(path, 'utf8')).records]).toEqual([undefined, []]);
  });

  it('never may do more than the key of its lender at the time of use', async () => {
    const { lend, clients, rightsOf, clock } = await createKeys();
    const { key } = await lend(7200);
    const change = (changed: Partial<ApiKey>) =>
      clients.replaceNamedKeys({ keys: [{ ...ada, ...changed }], groupLines: [], personLines: [] });
    change({ scopes: ['ask', 'admin'], expiresAt: clock.now() + hour, hasSubclients: true });
    const expected = { scopes: ['ask'], expiresAt: clock.now() + hour, hasSubclients: false };
    expect(rightsOf(key)).toMatchObject(expected);
    change({ scopes: ['metrics', 'admin'] });
    expect(rightsOf(key)?.scopes).toEqual([]);
  });

  it.each([
    ['rotated', [{ ...ada, digest: digestOf('new') }]],
    ['removed', []],
    ['expired', [{ ...ada, expiresAt: 5 }]],
  ])('ends for good when the key of its lender is %s', async (_, keys) => {
    const { lent, lend, clients, rightsOf } = await createKeys();
    const { key } = await lend();
    clients.replaceNamedKeys({ keys, groupLines: [], personLines: [] });
    await lent.refresh();
    clients.replaceNamedKeys({ keys: [ada], groupLines: [], personLines: [] });
    expect(rightsOf(key)).toBeUndefined();
  });

  it('can be lent by each client once, however many keys others have lent', async () => {
    const others = Array.from({ length: 320 }, (_, index) => ({
      ...ada,
      name: `k${index}`,
      digest: digestOf(`${index}`),
    }));
    const { lend, path } = await createKeys({ keys: [ada, ...others] });
    await lend();
    const [record] = JSON.parse(await readFile(path, 'utf8')).records;
    const records = others.flatMap(({ name, digest: lenderDigest }) =>
      Array.from({ length: maxOfClient }, (_, index) => ({
        ...{
          ...record,
          id: `${name}-${index}`,
          client: `key ${name}` as const,
          digest: digestOf(`${name}-${index}`),
          lenderDigest,
        },
      })),
    );
    await writeFile(path, JSON.stringify({ version: 1, records }));
    const next = await createKeys({ keys: [ada, ...others] });
    expect(await next.lend()).toMatchObject({ client: 'key ada' });
    await expect(next.lend()).rejects.toMatchObject({ code: 'forbidden' });
  });

  it('works as long as the old value of a rotated key', async () => {
    const { lent, lend, clients, rightsOf, clock } = await createKeys();
    const { key } = await lend(7200);
    const previous = { digest: ada.digest, expiresAt: clock.now() + hour };
    clients.replaceNamedKeys({
      keys: [{ ...ada, digest: digestOf('new'), previous }],
      groupLines: [],
      personLines: [],
    });
    await lent.refresh();
    expect(rightsOf(key)?.expiresAt).toBe(previous.expiresAt);
    await clock.advance(hour);
    await lent.refresh();
    expect(rightsOf(key)).toBeUndefined();
  });

  it('ends when its client is purged', async () => {
    const { lent, lend, rightsOf } = await createKeys();
    const [mine, other] = [await lend(), await lend(60, root, true)];
    expect(await lent.removeOf((client) => client === 'key ada')).toBe(1);
    expect(await lent.removeOf((client) => client === 'key ada')).toBe(0);
    expect([rightsOf(mine.key), rightsOf(other.key)?.lentId]).toEqual([undefined, other.id]);
  });

  it('survives a restart', async () => {
    const { lend, clock } = await createKeys();
    const { key, id } = await lend();
    const { rightsOf, lent } = await createKeys({ clock });
    expect(rightsOf(key)).toMatchObject({ client: 'key ada', lentId: id });
    expect(idsOf(lent.list({ by: actor('key root', true), lentId: null }))).toEqual([id]);
  });

  it('cannot lend, list or end anything but itself', async () => {
    const { lent, lend, rightsOf } = await createKeys();
    const [first, second] = [await lend(), await lend()];
    const borrower = { by: actor('key ada'), lentId: first.id };
    const digest = rightsOf(first.key)?.digest ?? null;
    await expect(lent.lend({ ...borrower, digest, seconds: 60 })).rejects.toMatchObject({ code: 'forbidden' });
    expect(() => lent.list(borrower)).toThrow(expect.objectContaining({ code: 'forbidden' }));
    await expect(lent.endKey({ ...borrower, id: second.id })).rejects.toMatchObject({ code: 'not_found' });
    expect(await lent.endKey({ ...borrower, id: 'current' })).toEqual({ id: first.id });
    expect([rightsOf(first.key), rightsOf(second.key)?.lentId]).toEqual([undefined, second.id]);
  });
});

describe('Lending', () => {
  it('is refused for too long, too often, without a key, and for a key without use', async () => {
    const metrics: ApiKey = { ...ada, name: 'metrics', digest: digestOf('of metrics'), scopes: ['metrics', 'admin'] };
    const { lent, lend } = await createKeys({ keys: [ada, metrics] });
    await expect(lend(24 * 3600 + 1)).rejects.toMatchObject({ code: 'validation_error' });
    await expect(lend(60, metrics)).rejects.toMatchObject({ code: 'forbidden' });
    const order = { by: actor('sso eve'), lentId: null, seconds: 60 };
    await expect(lent.lend({ ...order, digest: null })).rejects.toMatchObject({ code: 'forbidden' });
    await expect(lent.lend({ ...order, digest: ada.digest })).rejects.toMatchObject({ code: 'forbidden' });
    for (let index = 0; index < maxOfClient; index++) await lend();
    await expect(lend()).rejects.toMatchObject({ code: 'forbidden' });
    const off = await createKeys({ maxMs: 0 });
    await expect(off.lend(10)).rejects.toMatchObject({ code: 'forbidden' });
  });

  it('counts only keys that have not ended, and keeps the limit for requests at the same time', async () => {
    const { lend, clock } = await createKeys();
    const many = await Promise.allSettled(Array.from({ length: maxOfClient + 5 }, () => lend(60)));
    expect(many.filter(({ status }) => status === 'fulfilled')).toHaveLength(maxOfClient);
    await clock.advance(60_000);
    expect((await lend(60)).client).toBe('key ada');
  });

  it('is limited in an hour, but ending is not', async () => {
    const { lent, lend } = await createKeys();
    for (let index = 0; index < lendingRate.maxRequests; index++) {
      const { id } = await lend();
      await lent.endKey({ by: actor('key ada'), lentId: null, id });
    }
    await expect(lend()).rejects.toMatchObject({ code: 'rate_limited' });
  });

  it('has no effect without a record in the audit', async () => {
    const { lent, lend } = await createKeys({ isAuditBroken: true });
    await expect(lend()).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(lent.list({ by: actor('key root', true), lentId: null })).toEqual([]);
  });

  it('shows and ends only own keys, and all for an administrator', async () => {
    const { lent, lend } = await createKeys();
    const [own, other] = [await lend(), await lend(60, root, true)];
    const [byAda, byRoot] = [
      { by: actor('key ada'), lentId: null },
      { by: actor('key root', true), lentId: null },
    ];
    expect([idsOf(lent.list(byAda)), idsOf(lent.list(byRoot))]).toEqual([[own.id], [own.id, other.id]]);
    await expect(lent.endKey({ ...byAda, id: other.id })).rejects.toMatchObject({ code: 'not_found' });
    await expect(lent.endKey({ ...byAda, id: 'current' })).rejects.toMatchObject({ code: 'not_found' });
    expect(await lent.endKey({ ...byRoot, id: own.id })).toEqual({ id: own.id });
  });

  it('goes on after the stored keys were damaged, which have ended', async () => {
    const { lend, path } = await createKeys();
    const { key } = await lend();
    await writeFile(path, (await readFile(path, 'utf8')).slice(0, -20));
    const { rightsOf, log, lend: lendAgain } = await createKeys();
    expect([rightsOf(key), log.events]).toEqual([undefined, ['lent_keys_rejected']]);
    expect((await lendAgain()).client).toBe('key ada');
  });
});

/** Text that several hosts share, as Redis has it. */
function sharedTexts(): () => SharedText {
  let current: { text: string; version: number } | null = null;
  return () => {
    let known = 0;
    return {
      readText: async (parse) => {
        if ((current?.version ?? 0) === known) return null;
        const parsed = parse(current?.text ?? null);
        known = current?.version ?? 0;
        return parsed;
      },
      writeText: async (text) => {
        if ((current?.version ?? 0) !== known) return false;
        current = { text, version: ++known };
        return true;
      },
    };
  };
}

describe('On several hosts, a lent key', () => {
  it('works on each host, and is not ended by one that does not know the lender yet', async () => {
    const open = sharedTexts();
    const first = await createKeys({ shared: open() });
    const second = await createKeys({ shared: open() });
    const late = await createKeys({ shared: open(), keys: [root] });
    const { key, id } = await first.lend();
    for (const host of [second, late, first]) await host.lent.refresh();
    expect([second.rightsOf(key)?.lentId, late.rightsOf(key), first.rightsOf(key)?.lentId]).toEqual([
      id,
      undefined,
      id,
    ]);
    second.clients.replaceNamedKeys({ keys: [root], groupLines: [], personLines: [] });
    for (const host of [second, first]) await host.lent.refresh();
    expect(first.rightsOf(key)).toBeUndefined();
  });
});

import { mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { LimitedUses } from '../../../../src/features/budgets/limited-uses.js';
import type { MadeKeyStore } from '../../../../src/features/keys-api/made-key-store.js';
import { MadeKeys, ownActs } from '../../../../src/features/keys-api/made-keys.js';
import { madeKeysFile } from '../../../../src/features/keys-api/made-keys-file.js';
import { type MadeKey, madeKeysText, readMadeKeys } from '../../../../src/features/keys-api/records.js';
import { Clients } from '../../../../src/primary/access/clients.js';
import { FileFaults } from '../../../../src/primary/access/file-faults.js';
import { RateLimit } from '../../../../src/primary/access/rate-limit.js';
import type { OperatorAct } from '../../../../src/shared/acts.js';
import { withResolvers } from '../../../../src/shared/async.js';
import { type ClientText, clientText, holderOf, noClient } from '../../../../src/shared/client.js';
import { type AddedKey, type ApiKey, digestOf, plainOptions } from '../../../../src/shared/config/api-keys.js';
import { readKeysFile } from '../../../../src/shared/config/keys-file.js';
import { storeUnavailable } from '../../../../src/shared/errors.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { type TemporaryFolder, temporaryFolder } from '../../../support/basics/folder.js';
import { keyOptions } from '../../../support/basics/key-options.js';
import { LogBook } from '../../../support/basics/log-book.js';
import { settled } from '../../../support/basics/settled.js';
import { until } from '../../../support/basics/until.js';

const root = { client: 'key root' as const, isAdmin: true, requestId: 'request-1' };
const ada = { client: 'sso ada' as const, isAdmin: false, requestId: 'request-2' };
const eve = { ...ada, client: 'sso eve' as const };

let folder: TemporaryFolder;
beforeEach(async () => {
  folder = await temporaryFolder();
});
afterEach(() => folder[Symbol.asyncDispose]());

interface HostOptions {
  readonly isAuditBroken?: boolean;
  readonly reportsCosts?: boolean;
  /** Whether the file was read at the start. */
  readonly isRead?: boolean;
  /** Store of several hosts; by default a file. */
  readonly store?: MadeKeyStore;
}

/** Clients that show the keys that they got. */
class RecordedClients extends Clients {
  added: readonly AddedKey[] = [];

  override replaceAddedKeys(keys: readonly AddedKey[] | null): void {
    super.replaceAddedKeys(keys);
    this.added = keys ?? [];
  }
}

async function createKeys(lines = 'sso:ada:own_keys=2', options: HostOptions = {}) {
  const { isAuditBroken = false, reportsCosts = true, isRead = true, store } = options;
  const log = new LogBook();
  const clock = new FakeClock();
  const file = { path: join(folder.path, 'state', 'made-keys.json') };
  const operator: ApiKey = { name: 'root', digest: digestOf('root'), ...plainOptions, scopes: ['admin'] };
  const clients = new RecordedClients(
    {
      ...{
        rateMaxRequests: 0,
        rateWindowMs: 1000,
        apiKeys: [operator],
        namedKeys: [],
        groupLines: [],
        needsKey: true,
      },
      personLines: readKeysFile(lines, keyOptions).personLines,
    },
    clock,
  );
  /** Answer of the workers to new keys. */
  const workers = { answer: Promise.resolve() };
  const [records, fileFaults]: [OperatorAct[], FileFaults] = [[], new FileFaults()];
  const sent: string[][] = [];
  const beforeAct = async (act: OperatorAct) => {
    if (isAuditBroken) throw storeUnavailable('the audit file cannot be written');
    records.push(act);
  };
  const keys = new MadeKeys({
    ...{
      store: store ?? madeKeysFile(file.path, keyOptions),
      clients,
      keyOptions,
      beforeAct,
      fileFaults,
      reportsCosts,
      clock,
      ownActsLimit: new RateLimit((client) => [{ client, rate: ownActs }], clock),
      log,
    },
    onChange: async () => {
      sent.push(clients.keyNames);
      await workers.answer;
    },
  });
  if (isRead) await keys.refresh();
  sent.length = 0;
  const stored = async () => readMadeKeys(await readFile(file.path, 'utf8'), keyOptions);
  return { keys, workers, clients, records, sent, stored, path: file.path, log, clock, fileFaults };
}

describe('A file of keys that was damaged at the start', () => {
  const whole = { version: 1, keys: [] };
  const faults: Readonly<Record<string, (path: string, text: string) => Promise<unknown>>> = {
    'is empty': (path) => writeFile(path, ''),
    'is a folder': (path) => mkdir(path),
    'is a loop of links': (path) => symlink(path, path),
    'is too large': (path) => writeFile(path, ' '.repeat(17 * 1024 * 1024)),
    'has another version': (path) => writeFile(path, JSON.stringify({ ...whole, version: 2 })),
    'has no list': (path) => writeFile(path, JSON.stringify({ ...whole, keys: {} })),
    'is a list': (path) => writeFile(path, '[]'),
    ...Object.fromEntries(
      [2, 20, 60, 200].map((cut) => [
        `lacks its last ${cut} characters`,
        (path: string, text: string) => writeFile(path, text.slice(0, -cut)),
      ]),
    ),
  };

  it.each(Object.keys(faults))(
    'and %s closes only its keys, is visible, is never replaced, and is read once it is whole',
    async (fault) => {
      const first = await createKeys();
      const { key } = await first.keys.make(root, 'lab', {});
      const { path } = first;
      const text = await readFile(path, 'utf8');
      await rm(path);
      await faults[fault]?.(path, text);
      const { keys, clients, fileFaults, log } = await createKeys(undefined, { isRead: false });
      const [lab] = first.clients.added.map(({ client }) => client) as [ClientText];
      for (let times = 0; times < 2; times++) await keys.refresh();
      expect([clients.hasDigest(digestOf(key)), clients.hasDigest(digestOf('root'))]).toEqual([false, true]);
      expect(fileFaults.counts.made_keys).toBe(1);
      expect(log.entries.map(({ event }) => event)).toEqual(['keys_rejected']);
      expect(clients.hasAccess(lab, 0)).toBe(true); // otherwise its jobs would be cancelled
      await expect(keys.make(root, 'new', {})).rejects.toMatchObject({ code: 'store_unavailable' });
      await expect(keys.removeKey(root, 'lab')).rejects.toMatchObject({ code: 'store_unavailable' });
      await rm(path, { recursive: true });
      await writeFile(path, text);
      await keys.refresh();
      expect([clients.hasDigest(digestOf(key)), fileFaults.counts.made_keys]).toEqual([true, 0]);
      await keys.removeKey(root, 'lab');
      expect([clients.hasDigest(digestOf(key)), clients.hasAccess(lab, 0)]).toEqual([false, false]);
    },
  );

  it('has no keys if it is removed', async () => {
    const { keys, clients } = await createKeys(undefined, { isRead: false });
    await keys.refresh();
    expect([clients.added, clients.hasAccess('made lab~1', 0)]).toEqual([[], false]);
    expect(await keys.make(root, 'lab', {})).toMatchObject({ name: 'lab' });
  });
});

describe('A key that an administrator makes', () => {
  it('is shown once, and stored as a digest in a private file', async () => {
    const { keys, clients, records, sent, stored, path } = await createKeys();
    const made = await keys.make(root, 'lab', { scopes: 'ask', rate: '60/60', subclients: true, weight: null });
    expect(made).toMatchObject({
      ...{ name: 'lab', source: 'http', owner: 'key root', scopes: ['ask'], rate: '60/60', subclients: true },
      key: expect.stringMatching(/^pr_[\w-]{32}$/),
    });
    expect(clients.hasDigest(digestOf(made.key))).toBe(true);
    expect(await readFile(path, 'utf8')).not.toContain(made.key);
    expect(await stored()).toEqual(clients.added);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await stat(join(path, '..'))).mode & 0o777).toBe(0o700);
    expect(sent).toEqual([['root', 'lab']]);
    expect(records).toEqual([{ act: 'key_made', by: 'key root', target: made.client, request_id: 'request-1' }]);
    expect(JSON.stringify(keys.listKeys(root))).not.toContain(digestOf(made.key));
    expect(keys.listKeys(root).map(({ name, source }) => [name, source])).toEqual([
      ['root', 'operator'],
      ['lab', 'http'],
    ]);
  });

  it('is answered when all workers know the change: made, rotated and deleted', async () => {
    const { keys, workers, sent } = await createKeys();
    const acts = [
      () => keys.make(root, 'lab', {}),
      () => keys.rotate(root, 'lab', null),
      () => keys.removeKey(root, 'lab'),
    ];
    for (const [index, act] of acts.entries()) {
      const known = withResolvers();
      workers.answer = known.promise;
      let isAnswered = false;
      const answered = act().then(() => {
        isAnswered = true;
      });
      await until(() => sent.length > index, 'the keys to be sent');
      await settled();
      expect(isAnswered).toBe(false);
      known.resolve();
      await answered;
    }
  });

  it('can be changed, rotated and deleted', async () => {
    const { keys, clients, records, stored } = await createKeys();
    const { key } = await keys.make(root, 'lab', { weight: '3', tokens: '9/day' });
    expect(await keys.change(root, 'lab', { weight: null, queue: '5' })).toMatchObject({
      ...{ weight: null, queue: 5, tokens: '9/day' },
    });
    const rotated = await keys.rotate(root, 'lab', '2099-01-01');
    expect(rotated).toMatchObject({ queue: 5, previous_expires: '2099-01-01' });
    expect([key, rotated.key].map((each) => clients.hasDigest(digestOf(each)))).toEqual([true, true]);
    expect(await keys.change(root, 'lab', { queue: '6' })).toMatchObject({ previous_expires: '2099-01-01' });
    await keys.rotate(root, 'lab', null);
    expect([key, rotated.key].map((each) => clients.hasDigest(digestOf(each)))).toEqual([false, false]);
    expect(await stored()).toEqual(clients.added);
    await keys.removeKey(root, 'lab');
    expect([await stored(), clients.keyNames]).toEqual([[], ['root']]);
    expect(records.map(({ act }) => act)).toEqual([
      ...['key_made', 'key_changed', 'key_rotated', 'key_changed', 'key_rotated', 'key_removed'],
    ]);
  });

  it.each<[string, Record<string, string>, string]>([
    ['root', {}, 'name: another key already has the name root'],
    ['two words', {}, 'name: must be 1 to 64 letters'],
    ['', {}, 'name: must be'],
    ['x', { rate: '60/60,scopes=admin' }, 'rate: must be requests/seconds'],
    ['x', { tokens: '5' }, 'tokens: must be'],
    ['x', { expires: '2027-02-31' }, 'expires: must be a day'],
    ['x', { expires: '1970-01-01' }, 'expires: this day is over'],
    ['x', { previous: `${'a'.repeat(64)}/2099-01-01`, weight: '0' }, 'weight: must be'],
  ])('is refused if its name or an option is wrong: %s %j', async (name, options, message) => {
    const { keys, records } = await createKeys();
    await expect(keys.make(root, name, options)).rejects.toMatchObject({
      ...{ code: 'validation_error', message: expect.stringContaining(message) },
    });
    expect(records).toEqual([]);
  });

  it('may not have a budget in dollars if a model CLI reports no cost', async () => {
    const { keys } = await createKeys('', { reportsCosts: false });
    await expect(keys.make(root, 'x', { cost: '5/day' })).rejects.toMatchObject({ code: 'validation_error' });
  });

  it('does not exist if no record of it can be written', async () => {
    const { keys, clients, sent, path } = await createKeys('', { isAuditBroken: true });
    await expect(keys.make(root, 'lab', {})).rejects.toMatchObject({ code: 'store_unavailable' });
    expect([clients.keyNames, sent]).toEqual([['root'], []]);
    await expect(stat(path)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('does not exist if it cannot be stored', async () => {
    const { keys, clients, sent } = await createKeys();
    await writeFile(join(folder.path, 'state'), 'a file in place of the folder');
    await expect(keys.make(root, 'lab', {})).rejects.toMatchObject({ code: 'store_unavailable' });
    expect([clients.keyNames, sent]).toEqual([['root'], []]);
  });

  it('is stored although a killed service has left a draft', async () => {
    const { keys, stored, path } = await createKeys();
    await mkdir(join(path, '..'));
    await writeFile(`${path}.new`, '{"version":1,"ke');
    await keys.make(root, 'lab', {});
    expect((await stored()).map(({ name }) => name)).toEqual(['lab']);
    expect(await readdir(join(path, '..'))).toEqual(['made-keys.json']);
  });

  it('exists once if two requests ask for it at the same time', async () => {
    const { keys, clients } = await createKeys();
    const both = await Promise.allSettled([keys.make(root, 'lab', {}), keys.make(root, 'lab', {})]);
    expect(both.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
    expect(clients.keyNames).toEqual(['root', 'lab']);
  });
});

describe('A person with the option own_keys', () => {
  const line = 'sso:ada:own_keys=2,scopes=ask,rate=60/60,tokens=100/day,weight=2';

  it('makes keys with at most the own options', async () => {
    const { keys } = await createKeys(line);
    expect(await keys.make(ada, 'laptop', {})).toMatchObject({
      ...{ owner: 'sso ada', scopes: ['ask'], rate: '60/60', tokens: '100/day', weight: 2, subclients: false },
    });
    expect(await keys.make(ada, 'server', { rate: '30/60', weight: null, tokens: '50/day' })).toMatchObject({
      ...{ rate: '30/60', weight: 2, tokens: '50/day' },
    });
    await expect(keys.make(ada, 'third', {})).rejects.toMatchObject({ code: 'forbidden' });
    await keys.removeKey(ada, 'laptop');
    expect(await keys.make(ada, 'third', {})).toMatchObject({ name: 'third' });
  });

  it.each([
    { scopes: 'ask+admin' },
    { scopes: 'chat' },
    { rate: '61/60' },
    { rate: '60/59' },
    { tokens: '101/day' },
    { tokens: '100/month' },
    { weight: '3' },
    { group: 'biology' },
    { webhooks: 'https://example.org/*' },
    { subclients: true as const },
  ])('gets no more by %j, at once or later', async (options) => {
    const { keys } = await createKeys(line);
    const refused = { code: 'validation_error', message: expect.stringContaining('more than you may do') };
    await expect(keys.make(ada, 'laptop', options)).rejects.toMatchObject(refused);
    await keys.make(ada, 'laptop', {});
    await expect(keys.change(ada, 'laptop', options)).rejects.toMatchObject(refused);
    expect(await keys.change(ada, 'laptop', { rate: null, tokens: null })).toMatchObject({ tokens: '100/day' });
  });

  it('makes keys that count for the budgets of the own groups, if these have one', async () => {
    const { keys, clients, stored } = await createKeys(line);
    clients.replaceNamedKeys({ ...readKeysFile(`${line}\n@biology tokens=9/day`, keyOptions), keys: [] });
    clients.recordPerson('sso ada', ['lab', 'biology']);
    await keys.make(ada, 'laptop', {});
    await keys.make(root, 'lab', {});
    expect((await stored()).map(({ name, groups }) => [name, groups])).toEqual([
      ['laptop', ['biology']],
      ['lab', []],
    ]);
    clients.recordPerson('sso ada', []);
    const [laptop] = clients.added;
    expect(new LimitedUses(clients).of(laptop?.client ?? noClient).map(({ name }) => name)).toEqual([
      'ada',
      '@biology',
    ]);
  });

  it('changes own keys 30 times an hour, but deletes them at any time', async () => {
    const { keys, records, clock } = await createKeys('sso:ada:own_keys=2\nsso:eve:own_keys=2');
    await keys.make(ada, 'laptop', {});
    for (let act = 1; act < 30; act++) await keys.rotate(ada, 'laptop', null);
    const refused = { code: 'rate_limited', retryAfterSeconds: 3600 };
    await expect(keys.rotate(ada, 'laptop', null)).rejects.toMatchObject(refused);
    await expect(keys.change(ada, 'laptop', { weight: '1' })).rejects.toMatchObject(refused);
    await expect(keys.make(ada, 'phone', {})).rejects.toMatchObject(refused);
    expect(records).toHaveLength(30);
    await keys.make(eve, 'tablet', {});
    await keys.rotate(root, 'laptop', null);
    await keys.removeKey(ada, 'laptop');
    await clock.advance(3_600_000);
    await keys.make(ada, 'phone', {});
    expect(records).toHaveLength(34);
  });

  it('sees and changes only own keys', async () => {
    const { keys, clients } = await createKeys(`${line}\nsso:eve:own_keys=1`);
    await keys.make(ada, 'laptop', {});
    expect(keys.listKeys(ada).map(({ name }) => name)).toEqual(['laptop']);
    expect(keys.listKeys(eve)).toEqual([]);
    const noSuchKey = { code: 'not_found' };
    for (const name of ['laptop', 'root', 'nothing']) {
      await expect(keys.change(eve, name, {})).rejects.toMatchObject(noSuchKey);
      await expect(keys.removeKey(eve, name)).rejects.toMatchObject(noSuchKey);
      await expect(keys.rotate(eve, name, null)).rejects.toMatchObject(noSuchKey);
    }
    expect(clients.keyNames).toEqual(['root', 'laptop']);
    expect(await keys.change(root, 'laptop', { weight: '9' })).toMatchObject({ weight: 9, owner: 'sso ada' });
  });
});

describe('A name that is given again', () => {
  it('belongs to another client each time, whoever makes its key', async () => {
    const { keys, clients } = await createKeys('sso:ada:own_keys=2\nsso:eve:own_keys=2');
    const made: ClientText[] = [];
    for (const by of [ada, eve, root, ada]) {
      made.push(clientText.parse((await keys.make(by, 'laptop', {})).client));
      await keys.rotate(by, 'laptop', null);
      expect(clients.added[0]?.client).toBe(made.at(-1));
      await keys.removeKey(by, 'laptop');
    }
    expect(new Set(made).size).toBe(4);
    expect(made.map((each) => holderOf(each))).toEqual(['sso ada', 'sso eve', made[2], 'sso ada']);
  });

  it('belongs to another client than a key of the operator with this name, which both go on working', async () => {
    const { keys, clients } = await createKeys();
    const { key, client } = await keys.make(ada, 'lab', {});
    const lab = { name: 'lab', digest: digestOf('of the operator'), ...plainOptions, weight: 9 };
    clients.replaceNamedKeys({ keys: [lab], groupLines: [], personLines: clients.personLines });
    expect([clients.optionsOf('key lab').weight, clients.optionsOf(clientText.parse(client)).weight]).toEqual([
      9,
      null,
    ]);
    expect(keys.findWarnings()).toEqual([
      expect.stringContaining(`has the name lab, too. It is another client, ${client}.`),
    ]);
    const sent = clients.workerKeys.keys?.map(({ digest, client: each }) => [digest, each]);
    expect(sent).toEqual(
      expect.arrayContaining([
        [lab.digest, 'key lab'],
        [digestOf(key), client],
      ]),
    );
    await keys.removeKey(ada, 'lab');
    expect(clients.keyClients).toEqual(['key root', 'key lab']);
  });
});

/** Store of several hosts, which can be away or damaged. */
class SharedKeys {
  keys: readonly MadeKey[] = [];
  fault: Error | null = null;
  /** Called before each write, once: a change of another host comes first. */
  beforeWrite: () => Promise<unknown> = async () => {};

  host(): MadeKeyStore {
    let known = this.keys;
    return {
      read: async () => {
        if (this.fault !== null) throw this.fault;
        if (this.keys === known) return null;
        known = this.keys;
        return known;
      },
      write: async (keys) => {
        if (this.fault !== null) throw this.fault;
        const first = this.beforeWrite;
        this.beforeWrite = async () => {};
        await first();
        if (this.keys !== known) return false;
        known = keys;
        this.keys = keys;
        return true;
      },
    };
  }
}

describe('Keys of several hosts', () => {
  async function createHosts() {
    const shared = new SharedKeys();
    const host = () => createKeys('sso:ada:own_keys=2', { store: shared.host() });
    return { shared, north: await host(), south: await host() };
  }

  it('are known to the other hosts when these read the store, and to a change at once', async () => {
    const { north, south } = await createHosts();
    await north.keys.make(root, 'lab', {});
    expect(south.clients.keyNames).toEqual(['root']);
    await south.keys.refresh();
    expect([south.clients.keyNames, south.sent]).toEqual([['root', 'lab'], [['root', 'lab']]]);
    await south.keys.refresh();
    expect(south.sent).toHaveLength(1);
    await south.keys.change(root, 'lab', { weight: '2' });
    await north.keys.removeKey(root, 'lab');
    await expect(south.keys.rotate(root, 'lab', null)).rejects.toMatchObject({ code: 'not_found' });
  });

  it('exist once, although two hosts make them at the same time, and no change is lost', async () => {
    const { shared, north, south } = await createHosts();
    shared.beforeWrite = () => south.keys.make(root, 'lab', {});
    await expect(north.keys.make(root, 'lab', {})).rejects.toThrow('another key already has the name lab');
    shared.beforeWrite = () => north.keys.make(root, 'desk', {});
    await south.keys.change(root, 'lab', { weight: '2' });
    expect(shared.keys.map(({ name, weight }) => [name, weight])).toEqual([
      ['lab', 2],
      ['desk', null],
    ]);
    expect(south.records.map(({ act }) => act)).toEqual(['key_made', 'key_changed']);
  });

  it('count within the limit of a person over all hosts', async () => {
    const { shared, north, south } = await createHosts();
    await north.keys.make(ada, 'one', {});
    shared.beforeWrite = () => north.keys.make(ada, 'two', {});
    await expect(south.keys.make(ada, 'three', {})).rejects.toMatchObject({ code: 'forbidden' });
  });

  it('stay valid while the store is away or damaged, and are not changed', async () => {
    const { shared, north } = await createHosts();
    const { key } = await north.keys.make(root, 'lab', {});
    for (const fault of [storeUnavailable(), new Error('is damaged'), new Error('is damaged')]) {
      shared.fault = fault;
      await north.keys.refresh();
      await expect(north.keys.removeKey(root, 'lab')).rejects.toMatchObject({ code: 'store_unavailable' });
      expect(north.clients.hasDigest(digestOf(key))).toBe(true);
    }
    expect(north.records).toHaveLength(1);
    expect(north.log.events.filter((event) => event === 'keys_rejected')).toHaveLength(1);
    shared.fault = null;
    await north.keys.removeKey(root, 'lab');
    expect(north.clients.hasDigest(digestOf(key))).toBe(false);
  });
});

describe('A key whose record is damaged', () => {
  const rowOf = (name: string, more: object = {}) => ({
    ...{ name, client: `made ${name}~1` as const, digest: digestOf(name), owner: 'key root', options: {} },
    ...{ made_at: '2026-11-27T21:00:00.000Z', ...more },
  });
  const textOf = (...rows: readonly unknown[]) => JSON.stringify({ version: 1, keys: rows });

  it('can only be deleted, and its record stays in the file while other keys change', async () => {
    const damaged = rowOf('lab', { options: { colour: 'red' } });
    const { keys, log, stored, path } = await createKeys(undefined, { isRead: false });
    await mkdir(join(path, '..'));
    await writeFile(path, textOf(damaged, rowOf('desk'), 7));
    await keys.refresh();
    expect([log.events, keys.listKeys(root).map(({ name }) => name)]).toEqual([
      ['keys_rejected'],
      ['root', 'lab', 'desk', 'damaged-3'],
    ]);
    await expect(keys.change(root, 'lab', { weight: '2' })).rejects.toThrow('the stored record of lab is damaged');
    await expect(keys.rotate(root, 'lab', null)).rejects.toMatchObject({ code: 'forbidden' });
    await expect(keys.make(root, 'lab', {})).rejects.toThrow('another key already has the name lab');
    await keys.change(root, 'desk', { weight: '2' });
    expect(JSON.parse(await readFile(path, 'utf8')).keys).toMatchObject([damaged, { name: 'desk' }, 7]);
    for (const name of ['lab', 'damaged-3']) await keys.removeKey(root, name);
    expect((await stored()).map(({ name, weight }) => [name, weight])).toEqual([['desk', 2]]);
    expect(log.events.filter((event) => event === 'keys_rejected')).toHaveLength(2);
  });

  it('never takes the name, the client or the value of another key, which comes first', () => {
    const twins = [
      rowOf('lab', { digest: digestOf('other') }),
      rowOf('desk', { client: 'made lab~1' as const }),
      rowOf('ci', { digest: digestOf('lab') }),
    ];
    const read = readMadeKeys(textOf(rowOf('lab'), ...twins), keyOptions);
    expect(read.map(({ name, damage }) => [name, damage?.fault ?? null])).toEqual([
      ['lab', null],
      ['damaged-2', 'record 2 (damaged-2): another key already has its name'],
      ['desk', 'record 3 (desk): another key already has its client or its value'],
      ['ci', 'record 4 (ci): another key already has its client or its value'],
    ]);
    expect(new Set(read.map(({ client }) => client)).size).toBe(4);
    expect(read.filter(({ digest }) => digest === digestOf('lab'))).toHaveLength(1);
  });
});

describe('Nobody else', () => {
  it.each([eve, { ...ada, client: 'key root' }, { ...ada, client: 'user ada' }] as const)(
    'makes a key: %j',
    async (by) => {
      const { keys } = await createKeys();
      await expect(keys.make(by, 'x', {})).rejects.toMatchObject({ code: 'forbidden' });
      expect(() => keys.listKeys(by)).toThrow('this needs the scope admin');
    },
  );

  it('changes a key of the operator', async () => {
    const { keys } = await createKeys();
    await expect(keys.removeKey(root, 'root')).rejects.toMatchObject({ code: 'forbidden' });
    await expect(keys.rotate(root, 'root', null)).rejects.toMatchObject({ code: 'forbidden' });
  });
});

describe('The file of made keys', () => {
  it('may be one without clients: the time at which a key was made then identifies it', () => {
    const row = { digest: digestOf('key'), made_at: '2026-11-27T21:00:00.000Z', options: {} };
    const rows = [
      { name: 'laptop', owner: 'sso ada', ...row },
      { name: 'ci', owner: 'key root', ...row },
    ];
    const clientsIn = (text: string) => readMadeKeys(text, keyOptions).map(({ client }) => client);
    const read = clientsIn(JSON.stringify({ version: 1, keys: rows }));
    expect(read).toEqual([expect.stringMatching(/^sso ada\/laptop~\w+$/), expect.stringMatching(/^made ci~\w+$/)]);
    expect(
      clientsIn(madeKeysText(readMadeKeys(JSON.stringify({ version: 1, keys: rows }), keyOptions), keyOptions)),
    ).toEqual(read);
  });

  it.each(['', '{"version":1,"ke', '{"version":2,"keys":[]}', '[]', '{"version":1,"keys":{}}'])(
    'is reported as damaged: %j',
    (text) => {
      expect(() => readMadeKeys(text, keyOptions)).toThrow('is damaged');
    },
  );
});

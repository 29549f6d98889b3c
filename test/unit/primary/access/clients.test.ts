import { Clients, sameKeys } from '../../../../src/primary/access/clients.js';
import { type ClientText, noClient } from '../../../../src/shared/client.js';
import { type ApiKey, digestOf, type GroupLine, plainOptions } from '../../../../src/shared/config/api-keys.js';
import { readKeysFile } from '../../../../src/shared/config/keys-file.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { keyOptions } from '../../../support/basics/key-options.js';

const clock = new FakeClock();

function keyOf(name: string, options: Partial<ApiKey> = {}): ApiKey {
  return { name, digest: digestOf(name), ...plainOptions, ...options };
}

const own = { rate: { maxRequests: 5, windowMs: 1000 }, maxConcurrent: 2, maxQueued: 3, weight: 2, models: ['a'] };
const cap = { rateMaxRequests: 9, rateWindowMs: 60_000 };
const nothing = { apiKeys: [], namedKeys: [], groupLines: [], personLines: [] };
const noLines = { keys: [], groupLines: [], personLines: [] };
const none = { rate: null, maxConcurrent: null, maxQueued: null, weight: null, models: null };

function clientsWith(namedKeys: ApiKey[]): Clients {
  return new Clients({ ...cap, ...nothing, apiKeys: [keyOf('default')], namedKeys, needsKey: true }, clock);
}

describe('The options of a client', () => {
  it('are those of its key', () => {
    const clients = clientsWith([keyOf('ada', own)]);
    expect(clients.optionsOf('key ada')).toMatchObject(own);
    expect(clients.optionsOf('key default')).toMatchObject(none);
  });

  it('are empty if it has no key, whatever its name is', () => {
    const clients = clientsWith([keyOf('ada', own)]);
    for (const client of ['user ada', 'address ada', 'made ada', 'key bob', noClient] as const) {
      expect(clients.optionsOf(client)).toMatchObject(none);
    }
  });

  it('include a separate rate limit, or that of the service', () => {
    const clients = clientsWith([keyOf('ada', own)]);
    expect(clients.ratesOf('key ada')).toEqual([{ client: 'key ada', rate: own.rate }]);
    const common = { maxRequests: 9, windowMs: 60_000 };
    expect(clients.ratesOf('user ada')).toEqual([{ client: 'user ada', rate: common }]);
  });

  it('are bounded by those of its group if the group keeps its key, also when they become lower', () => {
    const { groupLines } = readKeysFile('@bio each=tokens:9/day each=rate:5/1', keyOptions);
    const lower = readKeysFile('@bio each=tokens:3/day each=rate:5/1', keyOptions);
    const clients = new Clients({ ...cap, ...nothing, groupLines, needsKey: true, keyOptions }, clock);
    const identity = { client: 'made ada~1' as const, groups: [], group: 'bio', needsGroup: true };
    const rate = { maxRequests: 2, windowMs: 1000 };
    const key = { ...keyOf('ada'), ...identity, rate, featureOptions: { tokens: '5/day' } };
    const unbounded = { ...keyOf('bob'), ...identity, client: 'made bob~1' as const, needsGroup: false };
    clients.replaceAddedKeys([key, { ...unbounded, featureOptions: { tokens: '5/day' } }]);
    expect(clients.optionsOf('made ada~1')).toMatchObject({ rate, featureOptions: { tokens: '5/day' } });
    clients.replaceNamedKeys(lower);
    expect(clients.optionsOf('made ada~1')).toMatchObject({ rate, featureOptions: { tokens: '3/day' } });
    expect(clients.optionsOf('made bob~1')).toMatchObject({ featureOptions: { tokens: '5/day' } });
  });

  it('change with the keys file', () => {
    const clients = clientsWith([keyOf('ada', own)]);
    clients.replaceNamedKeys({ ...noLines, keys: [keyOf('ada'), keyOf('bob', own)] });
    expect(clients.optionsOf('key ada')).toMatchObject(none);
    expect(clients.optionsOf('key bob')).toMatchObject(own);
    expect(clients.keyNames).toEqual(['default', 'ada', 'bob']);
  });
});

describe('The groups whose lines apply to a person', () => {
  it('are those of a stored job until the person sends a request', () => {
    const { groupLines } = readKeysFile('@bio each=tokens:9/day running=1', keyOptions);
    const clients = new Clients({ ...cap, ...nothing, groupLines, needsKey: true }, clock);
    const namesOf = (client: ClientText) => clients.groupsOf(client).map(({ name }) => name);
    expect(namesOf('sso ada')).toEqual([]);
    for (const client of ['sso ada', 'key ada', 'address ada'] as const)
      clients.recordJobGroups({ client, groups: ['bio'] });
    expect(namesOf('sso ada')).toEqual(['bio']);
    expect(clients.optionsOf('sso ada').featureOptions).toEqual({ tokens: '9/day' });
    expect([namesOf('key ada'), namesOf('address ada')]).toEqual([[], []]);
    clients.recordPerson('sso ada', []);
    clients.recordJobGroups({ client: 'sso ada', groups: ['bio'] });
    expect(namesOf('sso ada')).toEqual([]);
  });

  const linesOf = (...names: string[]) => names.map((name) => ({ name, featureOptions: {} }));
  const line = { ...plainOptions, name: 'eve', group: 'art' };
  const made = {
    ...{ ...keyOf('laptop'), client: 'sso ada/laptop~1' as const, owner: 'sso ada' },
    ...{ madeAt: 0, groups: ['biology', 'gone'] },
  };
  const people = new Clients(
    {
      ...{ ...cap, ...nothing, needsKey: true },
      groupLines: linesOf('biology', 'art', '*'),
      personLines: [line],
      namedKeys: [keyOf('bob', { group: 'art' })],
    },
    clock,
  );
  people.replaceAddedKeys([made, { ...made, ...keyOf('phone', { group: 'art' }), client: 'made phone~2' }]);

  it.each<[client: ClientText, named: string[], groups: string[]]>([
    ['sso ada', ['lab', 'biology', 'art', 'biology'], ['biology', 'art']],
    ['sso ada', ['*'], []],
    ['sso ada', [], []],
    ['sso eve', ['biology'], ['biology', 'art']],
    ['key bob', ['biology'], []],
    ['sso ada/laptop~1', [], ['biology']],
    ['made phone~2', [], ['biology', 'art']],
    ['key laptop', [], []],
    ['user ada', [], []],
  ] as const)('are those that have a line: %s in %j', (client, named, groups) => {
    expect(people.countedGroupsOf(client, named)).toEqual(groups);
  });

  it('are those of the last request, in a report', () => {
    const namesOf = (client: ClientText) => people.groupsOf(client).map(({ name }) => name);
    expect(namesOf('sso ada')).toEqual(['biology', '*']); // as when the laptop's key was made
    expect(namesOf('sso bob')).toEqual(['*']);
    people.recordPerson('sso ada', ['art', 'lab', 'biology']);
    expect(namesOf('sso ada')).toEqual(['art', 'biology', '*']);
    expect(namesOf('sso ada/laptop~1')).toEqual(['biology', '*']);
    expect(people.groupsOf('sso ada', [])).toMatchObject([{ name: '*' }]);
  });
});

it.each([0, 249, 250, 600])('Two lists of keys are equal if all their keys are: %d keys', async (length) => {
  const list = (changed: object = {}) =>
    Array.from({ length }, (_, index) => ({ ...keyOf(`key${index}`), ...(index === length - 1 && changed) }));
  const same = (one: ReturnType<typeof list>, other: typeof one) => sameKeys(one, other, async () => {});
  expect(await same(list(), list())).toBe(true);
  expect(await same(list(), [...list(), keyOf('more')])).toBe(false);
  expect(await same(list(), list({ weight: 7 }))).toBe(length === 0);
});

it('A sub-client of a key has the options of the key, and is a separate client', () => {
  const clients = clientsWith([keyOf('ada', own)]);
  expect(clients.optionsOf('key ada/grace')).toEqual(clients.optionsOf('key ada'));
  expect(clients.optionsOf('user ada/grace')).toEqual(clients.optionsOf('user nobody'));
  expect(clients.optionsOf('key adam/grace')).toEqual(clients.optionsOf('user nobody'));
});

describe('The options of a person', () => {
  const line = (name: string, options: Partial<ApiKey> = {}) => ({ ...plainOptions, name, ...options });

  it('are those of the line that applies to it with the groups that were last reported', () => {
    const personLines = [line('*', { weight: 2 }), line('group:lab', own), line('bob', { maxQueued: 7 })];
    const clients = new Clients({ ...cap, ...nothing, personLines, needsKey: true }, clock);
    expect(clients.optionsOf('sso ada')).toMatchObject({ ...none, weight: 2 });
    clients.recordPerson('sso ada', ['lab']);
    expect(clients.optionsOf('sso ada')).toMatchObject(own);
    expect(clients.optionsOf('sso bob')).toMatchObject({ maxQueued: 7 });
    clients.recordPerson('sso ada', []);
    expect(clients.optionsOf('sso ada')).toMatchObject({ weight: 2 });
    for (const client of ['key ada', 'user bob', 'address bob'] as const)
      expect(clients.optionsOf(client)).toMatchObject(none);
  });

  it('change with the keys file', () => {
    const clients = new Clients({ ...cap, ...nothing, needsKey: true }, clock);
    clients.recordPerson('sso ada', ['lab']);
    expect(clients.optionsOf('sso ada')).toMatchObject(none);
    clients.replaceNamedKeys({ ...noLines, personLines: [line('group:lab', own)] });
    expect(clients.optionsOf('sso ada')).toMatchObject(own);
    expect(clients.workerKeys.personLines).toEqual([
      { name: 'group:lab', scopes: ['ask', 'chat'], isCapped: true, expiresAt: null },
    ]);
  });
});

describe('The keys for the workers', () => {
  it('are null if requests need no key', () => {
    expect(new Clients({ ...cap, ...nothing, needsKey: false }, clock).workerKeys).toEqual({
      keys: null,
      personLines: [],
    });
  });

  it('are an empty list if the keys file is empty, so that no client is admitted', () => {
    expect(new Clients({ ...cap, ...nothing, needsKey: true }, clock).workerKeys).toEqual({
      keys: [],
      personLines: [],
    });
  });

  it('are the configured ones and those of the keys file', () => {
    const clients = clientsWith([keyOf('ada', own)]);
    const common = { scopes: ['ask', 'chat'], hasSubclients: false, expiresAt: null };
    const fixed = {
      name: 'default',
      client: 'key default' as const,
      digest: digestOf('default'),
      isCapped: false,
      ...common,
    };
    expect(clients.workerKeys.keys).toEqual([
      fixed,
      { name: 'ada', client: 'key ada', digest: digestOf('ada'), isCapped: true, ...common },
    ]);
    clients.replaceNamedKeys(noLines);
    expect(clients.workerKeys.keys).toEqual([fixed]);
    expect(clients.keyCount).toBe(1);
  });

  it('include the old value of a rotated key, until its transition or the key expires', () => {
    const previous = { digest: digestOf('old'), expiresAt: 7 };
    const clients = clientsWith([keyOf('ada', { previous }), keyOf('bob', { previous, expiresAt: 5 })]);
    const known = clients.workerKeys.keys?.map(({ name, digest, expiresAt }) => [name, digest, expiresAt]);
    expect(known?.slice(1)).toEqual([
      ['ada', digestOf('ada'), null],
      ['ada', digestOf('old'), 7],
      ['bob', digestOf('bob'), 5],
      ['bob', digestOf('old'), 5],
    ]);
    expect(clients.hasDigest(digestOf('old'))).toBe(true);
    expect(clients.keyNames).toEqual(['default', 'ada', 'bob']);
  });
});

describe('The access of a client', () => {
  const day = 86_400_000;
  const line = (name: string, options: Partial<ApiKey> = {}) => ({ ...plainOptions, name, ...options });
  const madeKey = (name: string, owner: ClientText) => {
    const client = `${owner}/${name}~8f2a11c09b3e` as const;
    return { ...keyOf(name), owner, client, madeAt: 0, groups: [] };
  };

  it('ends when its key is removed, or has expired, also for its sub-clients', () => {
    const clients = clientsWith([keyOf('ada'), keyOf('bob', { expiresAt: day })]);
    expect(
      (['key ada', 'key ada/x', 'key bob', 'key zoe'] as const).map((client) => clients.hasAccess(client, 0)),
    ).toEqual([...[true, true, true, false]]);
    expect([clients.hasAccess('key bob', day), clients.hasAccess('key bob/x', day)]).toEqual([false, false]);
    clients.replaceNamedKeys(noLines);
    expect(() => clients.checkAccess('key ada/x', 0)).toThrow('was removed, or has expired');
    expect(clients.hasAccess('key default', 0)).toBe(true);
  });

  it('ends for a key that needs its group when the group has no line', () => {
    const key = {
      ...madeKey('eve', 'sso ada'),
      client: 'made eve~8f2a11c09b3e' as const,
      group: 'bio101',
      needsGroup: true,
    };
    const clients = new Clients(
      { ...cap, ...nothing, groupLines: [{ name: 'bio101', featureOptions: {} }], needsKey: true },
      clock,
    );
    const ends = () => [clients.hasAccess(key.client, 1), clients.workerKeys.keys?.map(({ expiresAt }) => expiresAt)];
    clients.replaceAddedKeys([key]);
    expect(ends()).toEqual([true, [null]]);
    clients.replaceNamedKeys(noLines);
    expect(ends()).toEqual([false, [0]]);
    expect(() => clients.checkAccess(key.client, 1)).toThrow('was removed, or has expired');
  });

  it('ends with the groups of a job while the groups of its person are unknown', () => {
    const groupLines = [{ name: 'bio101', featureOptions: {}, expiresAt: day }];
    const clients = new Clients({ ...cap, ...nothing, groupLines, needsKey: true }, clock);
    const start = (now: number) => () => clients.checkAccess('sso ada', now, ['bio101']);
    expect(start(day - 1)).not.toThrow();
    expect(start(day)).toThrow('the group bio101 ended');
    clients.recordPerson('sso ada', []);
    expect(start(day)).not.toThrow();
  });

  it('ends with the line of its person, also for the keys that the person has made', () => {
    const clients = new Clients({ ...cap, ...nothing, needsKey: true }, clock);
    const key = madeKey('laptop', 'sso ada');
    clients.replaceAddedKeys([key]);
    const [client = noClient] = clients.keyClients;
    const validKeys = () => clients.workerKeys.keys?.filter(({ expiresAt }) => (expiresAt ?? day) >= day).length;
    expect([client.startsWith('sso ada/'), clients.hasAccess(client, 0), validKeys()]).toEqual([true, true, 1]);
    clients.replaceNamedKeys({ ...noLines, personLines: [line('ada', { expiresAt: 1 })] });
    expect([clients.hasAccess('sso ada', 2), clients.hasAccess(client, 2), validKeys()]).toEqual([false, false, 0]);
    expect(clients.hasAccess('sso bob', 2)).toBe(true);
    const personLines = [line('group:lab'), line('*', { expiresAt: 1 })];
    clients.replaceNamedKeys({ ...noLines, personLines });
    expect([clients.hasAccess('sso ada', 2), validKeys()]).toEqual([true, 1]); // the groups are not known yet
    clients.recordPerson('sso ada', []);
    expect([clients.hasAccess('sso ada', 2), clients.hasAccess(client, 2), validKeys()]).toEqual([false, false, 0]);
    clients.recordPerson('sso ada', ['lab']);
    expect([clients.hasAccess('sso ada', 2), validKeys()]).toEqual([true, 1]);
    clients.replaceAddedKeys([]);
    expect(clients.hasAccess(client, 2)).toBe(false);
  });

  it('does not end for keys that a host does not know yet, and for clients that need no key', () => {
    const clients = clientsWith([]);
    clients.replaceAddedKeys(null);
    expect(clients.hasAccess('made laptop~8f2a11c09b3e', 0)).toBe(true);
    clients.replaceAddedKeys([]);
    expect(clients.hasAccess('made laptop~8f2a11c09b3e', 0)).toBe(false);
    const open = new Clients({ ...cap, ...nothing, needsKey: false }, clock);
    for (const client of ['user ada', 'address 127.0.0.1', 'key old'] as const)
      expect(open.hasAccess(client, 0)).toBe(true);
  });
});

describe('A group with a line', () => {
  const day = 86_400_000;
  const person = (name: string, options: Partial<ApiKey> = {}) => ({ ...plainOptions, name, ...options });
  const rate = { maxRequests: 3, windowMs: 1000 };

  function createMembers(groupLines: GroupLine[], personLines = [person('*')]) {
    const time = new FakeClock();
    const namedKeys = [
      keyOf('ada', { group: 'bio101' }),
      keyOf('bob', { group: 'bio101', ...own, featureOptions: { tokens: '9/day' } }),
      keyOf('eve'),
    ];
    const settings = { ...cap, ...nothing, namedKeys, personLines, groupLines, needsKey: true };
    return { time, clients: new Clients(settings, time) };
  }

  it('sets options for members that their own lines do not set', () => {
    const each = { rate, maxConcurrent: 1, models: ['b'], featureOptions: { tokens: '5/day' } };
    const { clients } = createMembers([
      { name: 'bio101', featureOptions: {}, each },
      { name: 'lab', featureOptions: {}, each: { ...each, weight: 9, maxConcurrent: 7 } },
    ]);
    clients.recordPerson('sso joe', ['lab', 'bio101']);
    expect(clients.optionsOf('key ada/user')).toMatchObject({ ...none, ...each, group: 'bio101' });
    expect(clients.optionsOf('key bob')).toMatchObject({ ...own, featureOptions: { tokens: '9/day' } });
    expect(clients.optionsOf('key eve')).toMatchObject({ ...none, featureOptions: {} });
    expect(clients.optionsOf('sso joe')).toMatchObject({ ...none, ...each, weight: 9 });
    expect(clients.ownOptionsOf('sso joe')).toBe(clients.optionsOf('sso joe'));
    expect(clients.ratesOf('key ada')).toEqual([{ client: 'key ada', rate }]);
    clients.recordPerson('sso joe', []);
    expect(clients.optionsOf('sso joe')).toMatchObject(none);
    expect(clients.workerKeys.keys?.map(({ name, isCapped }) => [name, isCapped])).toEqual([
      ...[
        ['ada', true],
        ['bob', true],
        ['eve', false],
      ],
    ]);
  });

  it('bounds the keys that a person makes, like a line of the person', () => {
    const { clients } = createMembers([{ name: 'bio101', featureOptions: {}, each: { models: ['b'] } }]);
    clients.recordPerson('sso joe', ['bio101']);
    expect(clients.personOptions('sso joe').models).toEqual(['b']);
    expect(clients.personOptions('sso joe/laptop~1')).toBe(plainOptions);
  });

  it('limits the models of its members, in addition to their own models', () => {
    const { clients } = createMembers([
      { name: 'bio101', featureOptions: {}, models: ['a', 'b'] },
      { name: 'lab', featureOptions: {}, models: ['b', 'c'] },
    ]);
    clients.recordPerson('sso joe', ['lab', 'bio101']);
    expect(clients.groupModelsOf('sso joe')).toEqual([
      ['b', 'c'],
      ['a', 'b'],
    ]);
    expect(clients.groupModelsOf('key ada')).toEqual([['a', 'b']]);
    expect(clients.groupModelsOf('key eve')).toEqual([]);
  });

  it('refuses its keys and its people from its last day on, also waiting jobs, and names itself', () => {
    const { time, clients } = createMembers([], [person('*'), person('own')]);
    const expiresAt = time.now() + day;
    clients.replaceNamedKeys({
      ...{ keys: clients.namedKeys, personLines: clients.personLines },
      groupLines: [
        { name: 'bio101', featureOptions: {}, expiresAt },
        { name: 'lab', featureOptions: {} },
      ],
    });
    for (const [name, groups] of [
      ['joe', ['bio101']],
      ['ann', ['bio101', 'lab']],
      ['own', ['bio101']],
    ] as const)
      clients.recordPerson(`sso ${name}`, groups);
    const accepted = (now: number) =>
      (['key ada', 'key ada/x', 'key eve', 'sso joe', 'sso ann', 'sso own', 'user ada'] as const).filter((client) =>
        clients.hasAccess(client, now),
      );
    expect(accepted(expiresAt - 1)).toHaveLength(7);
    expect(accepted(expiresAt)).toEqual(['key eve', 'sso ann', 'sso own', 'user ada']);
    expect(() => clients.checkAccess('sso joe', expiresAt)).toThrow('the group bio101 ended at ');
    expect(clients.workerKeys.keys?.map(({ expiresAt: end, endsWith }) => [end, endsWith])).toEqual([
      ...[
        [expiresAt, 'bio101'],
        [expiresAt, 'bio101'],
        [null, undefined],
      ],
    ]);
    expect(clients.workerKeys.groups).toEqual([
      { name: 'bio101', isCapped: false, expiresAt },
      { name: 'lab', isCapped: false, expiresAt: null },
    ]);
  });

  it('in a group has the limits of that group, too, which counts what its members use', () => {
    const { time, clients } = createMembers([
      { name: 'institute', featureOptions: {}, models: ['a'], each: { weight: 3, maxQueued: 9 } },
      { name: 'bio101', featureOptions: {}, outer: 'institute', each: { weight: 4 } },
    ]);
    clients.recordPerson('sso joe', ['bio101']);
    expect(clients.countedGroupsOf('sso joe')).toEqual(['bio101', 'institute']);
    expect([...clients.groups].map(({ holders }) => holders)).toEqual([
      ['key ada', 'key bob', 'group institute'],
      ['key ada', 'key bob', 'group bio101'],
    ]);
    for (const client of ['sso joe', 'key ada'] as const) {
      expect(clients.groupsOf(client).map(({ name }) => name)).toEqual(['bio101', 'institute']);
      expect(clients.optionsOf(client)).toMatchObject({ weight: 4, maxQueued: 9 });
      expect(clients.groupModelsOf(client)).toEqual([['a']]);
    }
    const groupLines = clients.groupLines.map((line) =>
      line.name === 'institute' ? { ...line, expiresAt: time.now() + day } : line,
    );
    clients.replaceNamedKeys({ ...noLines, keys: clients.namedKeys, groupLines });
    expect((['key ada', 'sso joe'] as const).map((client) => clients.hasAccess(client, time.now() + day))).toEqual([
      false,
      false,
    ]);
    expect(() => clients.checkAccess('key ada', time.now() + day)).toThrow('the group institute ended at');
  });

  it('limits nobody after its end', async () => {
    const { time, clients } = createMembers([]);
    const each = { weight: 5 };
    const groupLines = [{ name: 'bio101', featureOptions: {}, models: ['a'], each, expiresAt: time.now() + day }];
    clients.replaceNamedKeys({ ...noLines, groupLines });
    clients.recordPerson('sso ann', ['bio101', 'lab']);
    const limits = () => [
      clients.optionsOf('sso ann').weight,
      clients.groupModelsOf('sso ann'),
      clients.countedGroupsOf('sso ann'),
      [...clients.groups].length,
    ];
    expect(limits()).toEqual([5, [['a']], ['bio101'], 1]);
    await time.advance(day);
    expect(limits()).toEqual([null, [], [], 0]);
    expect(clients.groupLines).toBe(groupLines);
  });
});

it('A group that ends when the clock is ahead limits its members again when the clock is set back', () => {
  const day = 86_400_000;
  let now = day;
  const groupLines = [{ name: 'bio101', featureOptions: {}, expiresAt: day, each: { maxConcurrent: 1 } }];
  const namedKeys = [keyOf('ada', { group: 'bio101' })];
  const clients = new Clients({ ...cap, ...nothing, groupLines, namedKeys, needsKey: true }, { now: () => now });
  expect([clients.hasAccess('key ada', now), clients.optionsOf('key ada').maxConcurrent]).toEqual([false, null]);
  now = day - 1;
  expect([clients.hasAccess('key ada', now), clients.optionsOf('key ada').maxConcurrent]).toEqual([true, 1]);
});

it('The options of each member hold for a person who has made a key in the group, before the first request', () => {
  const groupLines = [{ name: 'bio101', featureOptions: {}, each: { maxConcurrent: 1 } }];
  const clients = new Clients({ ...cap, ...nothing, groupLines, needsKey: true }, clock);
  clients.replaceAddedKeys([{ ...keyOf('laptop'), client: 'sso ada/laptop~1', groups: ['bio101'] }]);
  expect(clients.optionsOf('sso ada').maxConcurrent).toBe(1);
  clients.recordPerson('sso ada', []);
  expect(clients.optionsOf('sso ada').maxConcurrent).toBeNull();
});

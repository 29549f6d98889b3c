import { array, assert, boolean, constantFrom, option, property, record, uniqueArray } from 'fast-check';
import { type AccountState, eligibleAccounts, pickAccount } from '../../../../src/features/accounts/account-choice.js';

const account = (name: string, ...owners: string[]) => ({ name, owners });
const accounts = [
  account('team'),
  account('ada', 'key ada', 'user ada'),
  account('ada2', 'key ada'),
  account('bob', 'key lab/bob'),
  account('lab', 'key lab'),
  account('spare'),
  account('ann', 'sso ann'),
  account('ci', 'made ci~1'),
];
const atCodex = (name: string) => name === 'gpt' || name === 'gpt2';

function namesFor(client: string, keyAccounts: readonly string[] | null = null, list = accounts): string[] {
  return eligibleAccounts(client, list, keyAccounts, atCodex).map(({ name }) => name);
}

describe('The accounts that may serve a client', () => {
  it.each([
    ['key ada', null, ['ada', 'ada2'], 'its own accounts'],
    ['user ada', null, ['ada'], 'its own accounts'],
    ['key ada', ['spare'], ['ada', 'ada2'], 'its own accounts, even if its key names others'],
    ['key ada/phone', null, ['ada', 'ada2'], 'the accounts of the key of a sub-client'],
    ['key lab/bob', null, ['bob'], 'the own account of a sub-client'],
    ['key lab/eve', null, ['lab'], 'the account of the key of another sub-client'],
    ['key eve', null, ['team', 'spare'], 'the accounts without owners'],
    ['address local', null, ['team', 'spare'], 'the accounts without owners'],
    ['user lab', null, ['team', 'spare'], 'the accounts without owners, because a user is not the key of that name'],
    ['key eve', ['spare', 'team'], ['spare', 'team'], 'the accounts of its key, in the order of the key'],
    ['key eve', ['spare', 'gpt'], ['spare'], 'the accounts of its key at this CLI'],
    ['key eve', ['gpt'], ['team', 'spare'], 'the accounts without owners, if its key names only those of other CLIs'],
    ['key eve', ['ada'], [], 'none, if its key names an account of another client'],
    ['key eve', ['ada', 'team'], ['team'], 'only those of its key that are not the accounts of other clients'],
    ['key eve', ['missing'], [], 'none, if its key names an unknown account'],
    ['key eve', ['missing', 'gpt'], [], 'none, if its key names an unknown account'],
    ['sso ann/laptop~1', null, ['ann'], 'the accounts of the person who has made the key'],
    ['made ci~1/bob', null, ['ci'], 'the accounts of a made key'],
    ['made ci~2', null, ['team', 'spare'], 'the accounts without owners, because another made key has this name'],
    ['key ann', null, ['team', 'spare'], 'the accounts without owners, because a key is not the person of that name'],
    ['sso eve/ada~1', null, ['team', 'spare'], 'the accounts without owners, whatever name a person gives to a key'],
    ['made ada~1', null, ['team', 'spare'], 'the accounts without owners, because it is no key of the operator'],
  ])('are for %s with the accounts %j: %j (%s)', (client, keyAccounts, expected, _) => {
    expect(namesFor(client, keyAccounts)).toEqual(expected);
  });

  it('are none if all accounts belong to others', () => {
    expect(namesFor('key eve', null, [account('ada', 'key ada')])).toEqual([]);
  });

  it('never include an account of another client, for any file, client and key', () => {
    const names = ['a', 'b', 'c', 'd'];
    const clients = ['key ada', 'key bob', 'key lab', 'key lab/ada', 'user ada', 'address local'];
    const list = uniqueArray(
      record({ name: constantFrom(...names), owners: uniqueArray(constantFrom(...clients), { maxLength: 2 }) }),
      { selector: ({ name }) => name },
    );
    const keyAccounts = option(array(constantFrom(...names, 'x'), { minLength: 1, maxLength: 3 }));
    void assert(
      property(list, constantFrom(...clients), keyAccounts, (all, client, named) => {
        const eligible = eligibleAccounts(client, all, named, (name) => name === 'x');
        const holder = client.split('/')[0] ?? '';
        for (const { owners } of eligible)
          expect(owners.length === 0 || owners.includes(client) || owners.includes(holder)).toBe(true);
        const ownsAny = all.some(({ owners }) => owners.includes(client));
        if (ownsAny) expect(eligible.every(({ owners }) => owners.includes(client))).toBe(true);
        else if (named !== null && !named.includes('x'))
          for (const { name, owners } of eligible) expect(owners.length > 0 || named.includes(name)).toBe(true);
        expect(new Set(eligible).size).toBe(new Set(eligible.map(({ name }) => name)).size);
      }),
    );
  });
});

const idle: AccountState = { isRefused: false, isNotReady: false, hasSession: false, jobs: 0, maxRunning: null };

function picked(states: Readonly<Record<string, Partial<AccountState>>>): string | undefined {
  return pickAccount(Object.keys(states), (name) => ({ ...idle, ...states[name] }));
}

describe('The account that serves a job', () => {
  it('is the first one', () => {
    expect(picked({ team: {}, spare: {} })).toBe('team');
    expect(picked({ team: { jobs: 40 }, spare: {} })).toBe('team');
    expect(picked({})).toBeUndefined();
  });

  it('is the next one if the quota of the first is used up, or its check has failed', () => {
    expect(picked({ team: { isRefused: true }, spare: {} })).toBe('spare');
    expect(picked({ team: { isNotReady: true }, spare: {} })).toBe('spare');
    expect(picked({ team: { isRefused: true }, spare: { isNotReady: true } })).toBe('spare');
    expect(picked({ team: { isRefused: true }, spare: { isRefused: true } })).toBe('team');
  });

  it('is the one with the process of the conversation, unless it cannot be used', () => {
    expect(picked({ team: {}, spare: { hasSession: true } })).toBe('spare');
    expect(picked({ team: {}, spare: { hasSession: true, isRefused: true } })).toBe('team');
  });

  it('is the next one if the first is at its limit, and the least busy one if all are', () => {
    expect(picked({ team: { jobs: 2, maxRunning: 2 }, spare: { jobs: 1, maxRunning: 2 } })).toBe('spare');
    expect(picked({ team: { jobs: 1, maxRunning: 2 }, spare: { jobs: 0, maxRunning: 2 } })).toBe('team');
    expect(picked({ team: { jobs: 5, maxRunning: 2 }, spare: { jobs: 2, maxRunning: 1 } })).toBe('spare');
  });

  it('is usable if any eligible one is', () => {
    const state = record({ isRefused: boolean(), isNotReady: boolean(), hasSession: boolean() });
    void assert(
      property(array(state, { minLength: 1 }), (states) => {
        const found = pickAccount(states, (each) => ({ ...idle, ...each }));
        expect(found?.isRefused).toBe(states.every(({ isRefused }) => isRefused));
      }),
    );
  });
});

import { ok } from 'node:assert/strict';
import {
  array,
  assert,
  boolean,
  constantFrom,
  double,
  integer,
  option,
  property,
  record,
  uniqueArray,
} from 'fast-check';
import { type AccountState, eligibleAccounts, pickAccount } from '../../../../src/features/accounts/account-choice.js';
import { AccountTurns } from '../../../../src/features/accounts/account-turns.js';
import { weightLimits, weightOf } from '../../../../src/features/accounts/quota-share.js';
import type { ClientText } from '../../../../src/shared/client.js';
import type { QuotaWindow } from '../../../../src/shared/health.js';

const account = (name: string, ...owners: ClientText[]) => ({ name, owners });
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

function namesFor(client: ClientText, keyAccounts: readonly string[] | null = null, list = accounts): string[] {
  const logins = list.map((each) => ({ account: each }));
  return eligibleAccounts(client, logins, keyAccounts, atCodex).map(({ account: { name } }) => name);
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
  ] as const)('are for %s with the accounts %j: %j (%s)', (client, keyAccounts, expected, _) => {
    expect(namesFor(client, keyAccounts)).toEqual(expected);
  });

  it('are none if all accounts belong to others', () => {
    expect(namesFor('key eve', null, [account('ada', 'key ada')])).toEqual([]);
  });

  it('never include an account of another client, for any file, client and key', () => {
    const names = ['a', 'b', 'c', 'd'];
    const clients = ['key ada', 'key bob', 'key lab', 'key lab/ada', 'user ada', 'address local'] as const;
    const list = uniqueArray(
      record({ name: constantFrom(...names), owners: uniqueArray(constantFrom(...clients), { maxLength: 2 }) }),
      { selector: ({ name }) => name },
    );
    const keyAccounts = option(array(constantFrom(...names, 'x'), { minLength: 1, maxLength: 3 }));
    void assert(
      property(list, constantFrom(...clients), keyAccounts, (all, client, named) => {
        const logins = all.map((each) => ({ account: each }));
        const eligible = eligibleAccounts(client, logins, named, (name) => name === 'x').map((each) => each.account);
        const holder = client === 'key lab/ada' ? 'key lab' : client;
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

const idle: AccountState = {
  ...{ isRefused: false, isNotReady: false, hasSession: false, hadTurn: false, jobs: 0, maxRunning: null },
  isSpare: false,
  share: { turn: 0, weight: 1 },
};

function pick(states: Readonly<Record<string, Partial<AccountState>>>) {
  return pickAccount(Object.keys(states), (name) => ({ ...idle, ...states[name] }));
}

function picked(states: Readonly<Record<string, Partial<AccountState>>>): string | undefined {
  return pick(states)?.account;
}

describe('The account that serves a job', () => {
  it('is the first one whose turn is next', () => {
    expect(picked({ team: {}, other: {} })).toBe('team');
    expect(picked({ team: { jobs: 40 }, other: {} })).toBe('team');
    expect(picked({ team: { share: { turn: 1, weight: 1 } }, other: {} })).toBe('other');
    expect(picked({ team: {}, other: { share: { turn: 0, weight: 2 } } })).toBe('other');
    expect(picked({})).toBeUndefined();
  });

  it('is the next one if the quota of the first is used up, or its check has failed', () => {
    expect(picked({ team: { isRefused: true }, other: { share: { turn: 9, weight: 1 } } })).toBe('other');
    expect(picked({ team: { isNotReady: true }, other: { share: { turn: 9, weight: 1 } } })).toBe('other');
    expect(picked({ team: { isRefused: true }, other: { isNotReady: true } })).toBe('other');
    expect(picked({ team: { isRefused: true }, other: { isRefused: true } })).toBe('team');
  });

  it('is the one with the process of the conversation, else the one with its last turn, unless it cannot be used', () => {
    expect(picked({ team: {}, other: { hasSession: true, share: { turn: 9, weight: 1 } } })).toBe('other');
    expect(picked({ team: {}, other: { hasSession: true, isRefused: true } })).toBe('team');
    expect(picked({ team: {}, other: { hadTurn: true, share: { turn: 9, weight: 1 }, jobs: 2, maxRunning: 2 } })).toBe(
      'other',
    );
    expect(picked({ team: { hasSession: true, share: { turn: 9, weight: 1 } }, other: { hadTurn: true } })).toBe(
      'team',
    );
    expect(picked({ team: {}, other: { hadTurn: true, isRefused: true } })).toBe('team');
  });

  it('is the next one if the first is at its limit, and the least busy one if all are', () => {
    expect(picked({ team: { jobs: 2, maxRunning: 2 }, other: { jobs: 1, maxRunning: 2 } })).toBe('other');
    expect(picked({ team: { jobs: 1, maxRunning: 2 }, other: { jobs: 0, maxRunning: 2 } })).toBe('team');
    expect(picked({ team: { jobs: 5, maxRunning: 2 }, other: { jobs: 2, maxRunning: 1 } })).toBe('other');
  });

  it('is the first usable one below its limit if they do not share the jobs', () => {
    const pickedInOrder = (states: Readonly<Record<string, Partial<AccountState>>>) =>
      pickAccount(Object.keys(states), (name) => ({ ...idle, share: null, ...states[name] }));
    expect(pickedInOrder({ team: { jobs: 40 }, paid: {} })).toMatchObject({ account: 'team', reason: /first usable/ });
    expect(pickedInOrder({ team: { isRefused: true }, paid: {} })?.account).toBe('paid');
    expect(pickedInOrder({ team: { jobs: 2, maxRunning: 2 }, paid: {} })?.account).toBe('paid');
  });

  it('is not a spare one for a conversation that it served while the others could not be used', () => {
    expect(picked({ spare: { isSpare: true, hadTurn: true }, team: {} })).toBe('team');
  });

  it('is a spare one only if no other can be used', () => {
    expect(picked({ spare: { isSpare: true }, team: { share: { turn: 9, weight: 1 } } })).toBe('team');
    expect(picked({ spare: { isSpare: true }, team: { isRefused: true } })).toBe('spare');
    expect(picked({ spare: { isSpare: true }, team: { jobs: 1, maxRunning: 1 } })).toBe('spare');
  });

  it('is usable if any eligible one is', () => {
    const state = record({ isRefused: boolean(), isNotReady: boolean(), hasSession: boolean(), isSpare: boolean() });
    void assert(
      property(array(state, { minLength: 1 }), (states) => {
        const found = pickAccount(states, (each) => ({ ...idle, ...each }))?.account;
        expect(found?.isRefused).toBe(states.every(({ isRefused }) => isRefused));
      }),
    );
  });

  it('is chosen for a reason', () => {
    const reason = (states: Readonly<Record<string, Partial<AccountState>>>) => pick(states)?.reason;
    expect(reason({ team: {} })).toMatch('the only one');
    expect(reason({ team: {}, other: { hadTurn: true } })).toMatch('the last turn of the conversation');
    expect(reason({ team: {}, other: { isRefused: true } })).toMatch('blocked');
    expect(reason({ team: {}, other: {} })).toMatch('its turn');
  });
});

describe('The turns of several accounts', () => {
  const weights = array(double({ ...weightLimits, noNaN: true }), { minLength: 2, maxLength: 6 });

  /** Admits a job, and returns the number of its account. */
  function admit(turns: AccountTurns<object>, all: readonly { weight: number }[], usable = all): number {
    const state = (each: { weight: number }) => ({ ...idle, share: { weight: each.weight, turn: turns.nextOf(each) } });
    const { account: chosen } = pickAccount(usable, state) as { account: { weight: number } };
    turns.countJob(chosen, chosen.weight);
    return all.indexOf(chosen);
  }

  it('follow the weights within one job of each, at every moment, and no account starves', () => {
    void assert(
      property(weights, integer({ min: 1, max: 300 }), (all, jobs) => {
        const list = all.map((weight) => ({ weight }));
        const turns = new AccountTurns();
        const counts = all.map(() => 0);
        for (let job = 0; job < jobs; job++) {
          const at = admit(turns, list);
          counts[at] = (counts[at] ?? 0) + 1;
          for (const [a, weight] of all.entries())
            for (const [b, other] of all.entries())
              ok((counts[a] ?? 0) / weight - (counts[b] ?? 0) / other <= 1 / weight + 1e-9);
        }
      }),
    );
  });

  it('do not all go to an account that could not be used for a long time', () => {
    const list = [{ weight: 1 }, { weight: 1 }];
    const turns = new AccountTurns();
    for (let job = 0; job < 100; job++) expect(admit(turns, list, list.slice(0, 1))).toBe(0);
    const later = Array.from({ length: 10 }, () => admit(turns, list));
    expect(later.filter((at) => at === 1)).toHaveLength(5);
  });
});

describe('The weight of an account', () => {
  const hour = 60 * 60_000;
  const now = 1_800_000_000_000;
  const window = (more: Partial<QuotaWindow>): QuotaWindow => ({
    ...{ name: 'five_hour', status: 'allowed', utilization: 0.5, resetsAt: now + 2.5 * hour },
    ...more,
  });

  it('is what is left of the quota by the time until its reset, for the scarcest window', () => {
    expect(weightOf([], '', now)).toBe(1);
    expect(weightOf([window({})], '', now)).toBe(1);
    expect(weightOf([window({ utilization: 0.25 })], '', now)).toBe(1.5);
    expect(weightOf([window({ resetsAt: now + hour })], '', now)).toBe(2.5);
    const scarce = window({ name: 'seven_day', utilization: 0.9, resetsAt: now + 7 * 24 * hour });
    expect(weightOf([window({ utilization: 0 }), scarce], '', now)).toBeCloseTo(0.1);
  });

  it('counts the window of a model for that model only, and nothing that is unknown', () => {
    const opus = window({ name: 'seven_day_opus', utilization: 1, resetsAt: now + 24 * hour });
    expect(weightOf([opus], 'claude-opus-5-5', now)).toBe(weightLimits.min);
    expect([weightOf([opus], 'sonnet', now), weightOf([opus], '', now)]).toEqual([1, 1]);
    expect(weightOf([window({ utilization: null }), window({ name: 'overage', utilization: 1 })], '', now)).toBe(1);
    expect(weightOf([window({ utilization: null, status: 'warning' })], '', now)).toBeLessThan(1);
    expect(weightOf([window({ utilization: 0, status: 'rejected' })], '', now)).toBe(weightLimits.min);
    expect(weightOf([window({ resetsAt: null })], '', now)).toBe(0.5);
  });

  it('is within its limits, and never grows while the quota is used', () => {
    const use = double({ min: 0, max: 2, noNaN: true });
    void assert(
      property(use, use, integer({ min: -hour, max: 8 * 24 * hour }), (a, b, left) => {
        const of = (utilization: number) => weightOf([window({ utilization, resetsAt: now + left })], '', now);
        expect(of(Math.max(a, b))).toBeLessThanOrEqual(of(Math.min(a, b)));
        expect(of(a)).toBeGreaterThanOrEqual(weightLimits.min);
        expect(of(a)).toBeLessThanOrEqual(weightLimits.max);
      }),
    );
  });
});

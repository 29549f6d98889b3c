import type { LimitedUse } from '../../../../src/features/budgets/limited-uses.js';
import type { Budget } from '../../../../src/features/budgets/options.js';
import type { UsageRow } from '../../../../src/features/usage/report-form.js';
import type { Charge } from '../../../../src/primary/jobs/bill.js';
import { withResolvers } from '../../../../src/shared/async.js';
import { type ClientText, holderOf } from '../../../../src/shared/client.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { CountedBudgets } from '../../../support/jobs/counted-budgets.js';

const hourMs = 3_600_000;

function charge(tokens: number, costUsd: number | null = null): Charge {
  return { inputTokens: 1, cachedTokens: 0, cacheWriteTokens: 0, outputTokens: tokens - 1, searches: 0, costUsd };
}

function row(client: string, input: number): UsageRow {
  return {
    kind: 'key',
    client,
    tokens: { input, cached_input: 0, cache_write: 0, output: 0 },
    web_searches: 0,
    cost_usd: null,
  } as UsageRow;
}

function daily(budget: { readonly tokens?: number; readonly costUsd?: number }): Budget {
  const limit = (max?: number) => (max === undefined ? null : ({ max, period: 'day' } as const));
  return { tokens: limit(budget.tokens), costUsd: limit(budget.costUsd) };
}

function limitedUse(holder: ClientText, keys: ReadonlyMap<string, Budget>): LimitedUse[] {
  const budget = keys.get(holder);
  const isSet = budget !== undefined && (budget.tokens !== null || budget.costUsd !== null);
  return isSet ? [{ ...budget, kind: 'key', name: holder.slice('key '.length), holders: [holder] }] : [];
}

function budgetsOf(budget: Parameters<typeof daily>[0]) {
  const clock = new FakeClock();
  const keys = new Map<string, Budget>([['key ada', daily(budget)]]);
  const budgetsOf = (client: ClientText) => limitedUse(holderOf(client), keys);
  const budgets = new CountedBudgets(clock, budgetsOf);
  return {
    clock,
    keys,
    budgets,
    usesOf: (names: string[]) => budgets.usesOf(names.flatMap((name) => budgetsOf(`key ${name}`))),
  };
}

describe('The budget of a key', () => {
  it('is checked before a job, so a job may use more than is left', () => {
    const { budgets } = budgetsOf({ tokens: 100 });
    budgets.jobEnded({ client: 'key ada' }, charge(99));
    budgets.checkBudget({ client: 'key ada' });
    budgets.jobEnded({ client: 'key ada' }, charge(50));
    expect(() => budgets.checkBudget({ client: 'key ada' })).toThrow(
      'the daily budget of the API key is used up: 149 of 100 tokens; it resets at 2026-01-02T00:00:00.000Z',
    );
    expect(() => budgets.checkBudget({ client: 'key bob' })).not.toThrow();
  });

  it('is shared by its holder and all sub-clients', () => {
    const { budgets } = budgetsOf({ costUsd: 1.5 });
    budgets.jobEnded({ client: 'key ada/x' }, charge(5, 1));
    budgets.jobEnded({ client: 'key ada/y' }, charge(5, 0.5));
    for (const client of ['key ada', 'key ada/x', 'key ada/new'] as const) {
      expect(() => budgets.checkBudget({ client })).toThrow(
        'the daily budget of the API key is used up: $1.50 of $1.5;',
      );
    }
  });

  it('resets at midnight UTC, and the error gives that time, but advises to retry after five minutes at most', async () => {
    const { budgets, usesOf, clock } = budgetsOf({ tokens: 1 });
    budgets.jobEnded({ client: 'key ada' }, charge(1));
    const refusal = () => {
      try {
        budgets.checkBudget({ client: 'key ada' });
        return null;
      } catch (error) {
        return error;
      }
    };
    expect(refusal()).toMatchObject({ code: 'rate_limited', reason: 'budget', retryAfterSeconds: 300 });
    await clock.advance(24 * hourMs - 60_000);
    expect(refusal()).toMatchObject({ retryAfterSeconds: 60 });
    await clock.advance(60_000);
    expect(refusal()).toBeNull();
    const resets_at = '2026-01-03T00:00:00.000Z';
    expect(usesOf(['ada', 'bob'])).toEqual([
      {
        client: 'ada',
        kind: 'key',
        resets_at,
        tokens: { max: 1, used: 0, period: 'day', resets_at },
        cost_usd: null,
      },
    ]);
  });

  it('includes the usage in the store, from other hosts and earlier services', async () => {
    const { budgets, usesOf } = budgetsOf({ tokens: 100 });
    budgets.jobEnded({ client: 'key ada' }, charge(10)); // in the store before it is read
    await budgets.refresh({ report: () => [row('ada', 30), row('ada/x', 20), row('bob', 500)] });
    expect(usesOf(['ada'])[0]?.tokens).toMatchObject({ max: 100, used: 50 });
    budgets.jobEnded({ client: 'key ada' }, charge(5));
    expect(usesOf(['ada'])[0]?.tokens?.used).toBe(55);
  });

  it('includes what a key used earlier that day, before it had a budget', () => {
    const { budgets, keys } = budgetsOf({});
    budgets.jobEnded({ client: 'key bob' }, charge(10));
    keys.set('key bob', daily({ tokens: 10 }));
    expect(() => budgets.checkBudget({ client: 'key bob' })).toThrow('is used up: 10 of 10 tokens');
    keys.set('key bob', daily({ tokens: 11 }));
    expect(() => budgets.checkBudget({ client: 'key bob' })).not.toThrow();
  });

  it('loses nothing while the store is queried, and sends one query at a time', async () => {
    const { budgets, usesOf } = budgetsOf({ tokens: 100 });
    const { promise, resolve } = withResolvers<UsageRow[]>();
    let asked = 0;
    const journal = { report: () => (asked++ === 0 ? promise : []) };
    budgets.jobEnded({ client: 'key ada' }, charge(60));
    const refreshes = [budgets.refresh(journal), budgets.refresh(journal)];
    budgets.jobEnded({ client: 'key ada' }, charge(40));
    expect(() => budgets.checkBudget({ client: 'key ada' })).toThrow('is used up: 100 of 100');
    resolve([row('ada', 70)]);
    await Promise.all(refreshes);
    expect(asked).toBe(3); // for the day, the week and the month
    expect(usesOf(['ada'])[0]?.tokens?.used).toBe(110);
  });

  it('ignores the usage of the previous day if the store answers after midnight', async () => {
    const { budgets, usesOf, clock } = budgetsOf({ tokens: 100 });
    const { promise, resolve } = withResolvers<UsageRow[]>();
    budgets.jobEnded({ client: 'key ada' }, charge(60));
    const refresh = budgets.refresh({ report: () => promise });
    await clock.advance(24 * hourMs);
    budgets.checkBudget({ client: 'key ada' });
    resolve([row('ada', 70)]);
    await refresh;
    expect(usesOf(['ada'])[0]?.tokens?.used).toBe(0);
  });

  it('continues to count while the store does not respond', async () => {
    const { budgets, usesOf } = budgetsOf({ tokens: 100 });
    budgets.jobEnded({ client: 'key ada' }, charge(10));
    await expect(budgets.refresh({ report: () => Promise.reject(new Error('away')) })).rejects.toThrow('away');
    expect(usesOf(['ada'])[0]?.tokens?.used).toBe(10);
  });
});

describe('The budget of a week or month', () => {
  const limit = (period: 'week' | 'month') => ({ tokens: { max: 100, period }, costUsd: null });
  const used = (usesOf: ReturnType<typeof budgetsOf>['usesOf']) => usesOf(['ada'])[0]?.tokens?.used;

  it.each([
    ['week', '2026-01-01T00:00:00.000Z', '2026-01-05T00:00:00.000Z'],
    ['week', '2026-01-05T00:00:00.000Z', '2026-01-12T00:00:00.000Z'],
    ['week', '2026-12-28T12:00:00.000Z', '2027-01-04T00:00:00.000Z'],
    ['month', '2026-01-01T00:00:00.000Z', '2026-02-01T00:00:00.000Z'],
    ['month', '2028-02-29T23:59:59.000Z', '2028-03-01T00:00:00.000Z'],
    ['month', '2026-12-31T23:59:59.000Z', '2027-01-01T00:00:00.000Z'],
  ] as const)('is in UTC: a %s at %s ends at %s', async (period, now, end) => {
    const { budgets, usesOf, clock, keys } = budgetsOf({});
    keys.set('key ada', limit(period));
    await clock.advance(Date.parse(now) - clock.now());
    budgets.jobEnded({ client: 'key ada/x' }, charge(100));
    expect(() => budgets.checkBudget({ client: 'key ada' })).toThrow(
      `${period === 'week' ? 'weekly' : 'monthly'} budget of the API key is used up: 100 of 100 tokens; it resets at ${end}`,
    );
    expect(usesOf(['ada'])[0]?.resets_at).toBe(end);
    await clock.advance(Date.parse(end) - clock.now() - 1);
    expect(() => budgets.checkBudget({ client: 'key ada' })).toThrow('is used up');
    await clock.advance(1);
    expect(used(usesOf)).toBe(0);
  });

  it('may be in another period than the budget for the cost, and the use of both has its own end', () => {
    const { budgets, usesOf, keys } = budgetsOf({});
    keys.set('key ada', { tokens: { max: 100, period: 'month' }, costUsd: { max: 5, period: 'day' } });
    budgets.jobEnded({ client: 'key ada' }, charge(9, 1));
    const day = '2026-01-02T00:00:00.000Z';
    const month = '2026-02-01T00:00:00.000Z';
    expect(usesOf(['ada'])).toEqual([
      {
        client: 'ada',
        kind: 'key',
        resets_at: day,
        tokens: { max: 100, used: 9, period: 'month', resets_at: month },
        cost_usd: { max: 5, used: 1, period: 'day', resets_at: day },
      },
    ]);
  });

  it('is read from the store from its first day on, at the start and then once a minute', async () => {
    const { budgets, usesOf, clock, keys } = budgetsOf({});
    keys.set('key ada', limit('month'));
    await clock.advance(30 * 24 * hourMs);
    const asked: string[] = [];
    const journal = {
      report: (_client: null, { since }: { readonly since: string }) => {
        asked.push(since);
        return [row('ada', since === '2026-01-01' ? 70 : 10)];
      },
    };
    await budgets.refresh(journal);
    budgets.jobEnded({ client: 'key ada' }, charge(5));
    await clock.advance(5000);
    await budgets.refresh(journal);
    expect(asked).toEqual(['2026-01-31', '2026-01-26', '2026-01-01', '2026-01-31']);
    expect(used(usesOf)).toBe(75);
    await clock.advance(60_000);
    await budgets.refresh(journal);
    expect(asked).toHaveLength(7);
    expect(used(usesOf)).toBe(70);
  });
});

it('The web searches of a day are those of a key with its sub-clients, or of a person, from the store and since then', async () => {
  const { budgets, clock } = budgetsOf({});
  const count = () => (['key ada', 'key bob', 'sso ada'] as const).map((client) => budgets.searchesOf(client));
  budgets.jobEnded({ client: 'key ada/x', groups: ['art'] }, { ...charge(1), searches: 2 });
  budgets.jobEnded({ client: 'sso ada' }, { ...charge(1), searches: 5 });
  expect(count()).toEqual([2, 0, 5]);
  const stored = [
    { ...row('ada', 1), web_searches: 3 },
    { ...row('ada/y', 1), web_searches: 4 },
    { ...row('ada', 1), kind: 'sso' as const, web_searches: 6 },
  ];
  await budgets.refresh({ report: () => stored });
  budgets.jobEnded({ client: 'key ada' }, { ...charge(1), searches: 1 });
  expect(count()).toEqual([8, 0, 6]);
  await clock.advance(24 * hourMs);
  expect(count()).toEqual([0, 0, 0]);
});

describe('A budget that several clients share', () => {
  const limits = daily({ tokens: 100 });
  const group: LimitedUse = { ...limits, kind: 'group', name: '@biology', holders: ['key ada', 'key bob'] };
  const service: LimitedUse = { ...limits, kind: 'service', name: '@*', holders: null };

  it('counts all keys of a group, with their sub-clients, and no other key', async () => {
    const budgets = new CountedBudgets(new FakeClock(), (client) => (client === 'key eve' ? [] : [group]));
    budgets.jobEnded({ client: 'key ada/x' }, charge(40));
    budgets.jobEnded({ client: 'key eve' }, charge(500));
    budgets.checkBudget({ client: 'key bob' });
    budgets.jobEnded({ client: 'key bob' }, charge(60));
    const refusal = 'the daily budget of the group biology is used up: 100 of 100 tokens; it resets at 2026-';
    for (const client of ['key ada', 'key bob/y'] as const)
      expect(() => budgets.checkBudget({ client })).toThrow(refusal);
    budgets.checkBudget({ client: 'key eve' });
    await budgets.refresh({ report: () => [row('ada', 30), row('bob/x', 20), row('eve', 500)] });
    expect(budgets.usesOf([group])).toMatchObject([{ client: '@biology', tokens: { max: 100, used: 50 } }]);
  });

  it('counts the jobs of people in each of their groups, on this host and in the store, and once for the service', async () => {
    const ofGroup = (name: string) => ({
      ...limits,
      kind: 'group' as const,
      name: `@${name}`,
      holders: [`group ${name}` as const],
    });
    const known = [ofGroup('biology'), ofGroup('art')];
    const budgets = new CountedBudgets(new FakeClock(), (_, groups) =>
      known.filter(({ name }) => groups.includes(name.slice(1))),
    );
    budgets.jobEnded({ client: 'sso ada', groups: ['biology', 'art'] }, charge(60));
    budgets.jobEnded({ client: 'sso bob', groups: ['biology'] }, charge(40));
    budgets.jobEnded({ client: 'sso eve' }, charge(500));
    const used = () => budgets.usesOf([...known, service]).map(({ tokens }) => tokens?.used);
    expect(used()).toEqual([100, 60, 600]);
    expect(() => budgets.checkBudget({ client: 'sso eve', groups: ['art', 'biology'] })).toThrow(
      'the daily budget of the group biology',
    );
    budgets.checkBudget({ client: 'sso eve', groups: ['art'] });
    const stored = [
      { ...row('ada', 30), kind: 'sso' as const },
      { ...row('group biology', 20), kind: 'other' as const },
    ];
    await budgets.refresh({ report: () => stored });
    expect(used()).toEqual([20, 0, 30]);
  });

  it('counts every client for the whole service, also local users, addresses and clients beyond the limits', async () => {
    const budgets = new CountedBudgets(new FakeClock(), () => [service]);
    for (const client of ['key ada', 'user bob', 'address local'] as const) budgets.jobEnded({ client }, charge(30));
    budgets.checkBudget({ client: 'user eve' });
    budgets.jobEnded({ client: 'sso eve' }, charge(10));
    expect(() => budgets.checkBudget({ client: 'user eve' })).toThrow(
      'the daily budget of the service is used up: 100 of 100 tokens',
    );
    const users = [
      { ...row('bob', 7), kind: 'user' as const },
      { ...row('other', 5), kind: 'other' as const },
    ];
    await budgets.refresh({ report: () => [row('ada', 30), ...users] });
    expect(budgets.usesOf([service])).toMatchObject([{ client: '@*', tokens: { max: 100, used: 42 } }]);
  });
});

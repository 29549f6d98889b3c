import type { Period, UsageDelta } from '../../../../src/features/stores/contract/usage.js';
import { UsageLedger } from '../../../../src/features/usage/ledger.js';
import { type Bill, noBill, noCharge } from '../../../../src/primary/jobs/bill.js';
import type { ClientText } from '../../../../src/shared/client.js';
import { outcomes } from '../../../../src/shared/job.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { jobDone, jobFailed, jobRequest } from '../../../support/jobs/job-records.js';

const always: Period = { since: null, until: null };
const dayMs = 86_400_000;
const none = Object.fromEntries(outcomes.map((outcome) => [outcome, 0]));

function createLedger() {
  const clock = new FakeClock();
  const ledger = new UsageLedger(clock);
  const answer = (client: ClientText) => ledger.jobEnded(jobRequest({ client }), jobDone(), noBill);
  const answerOf = (model: string | null, client: ClientText = 'key alice', bill: Partial<Bill> = {}) =>
    ledger.jobEnded(jobRequest({ client }), jobDone({ model }), { ...noBill, ...bill });
  return { clock, ledger, answer, answerOf };
}

describe('The usage of a client', () => {
  it('contains its jobs by outcome, all their tokens and costs, time and refusals', () => {
    const { ledger } = createLedger();
    const request = jobRequest({ client: 'key alice' });
    const used = { inputTokens: 10, cachedTokens: 4, cacheWriteTokens: 2, outputTokens: 3, searches: 5 };
    const charge = { ...noBill, modelMs: 100, ...used, costUsd: 0.25 };
    for (const outcome of outcomes) {
      if (outcome !== 'ok')
        ledger.jobEnded(
          request,
          jobFailed(outcome, { executionMs: 100 }),
          outcome === 'timeout' ? charge : { ...noBill, modelMs: 100 },
        );
    }
    ledger.jobEnded(request, jobDone({ executionMs: 1500 }), charge);
    ledger.jobEnded(request, jobDone({ executionMs: 1500 }), { ...charge, costUsd: null });
    ledger.countRefusal('key alice');
    const jobs = { ...Object.fromEntries(outcomes.map((outcome) => [outcome, 1])), ok: 2 };
    const tokens = { input: 30, cached_input: 12, cache_write: 6, output: 9 };
    const row = { day: '2026-01-01', client: 'alice', kind: 'key', jobs, refused: 1, tokens };
    expect(ledger.report(null, always)).toEqual([{ ...row, web_searches: 15, cost_usd: 0.5, model_seconds: 1.1 }]);
  });

  it('is listed separately, however many users another key has', () => {
    const { ledger, answer } = createLedger();
    for (let n = 0; n < 2000; n++) answer(`key app/${n}`);
    answer('key bob');
    const rows = ledger.report(null, always);
    expect([rows.length, rows.find(({ client }) => client === 'app')?.jobs.ok]).toEqual([502, 1500]);
    expect(ledger.report('key bob', always)).toHaveLength(1);
  });

  it('is also the usage of its groups, which only budgets read, also of older days and beyond 1,000 clients', async () => {
    const { clock, ledger, answer } = createLedger();
    for (let n = 0; n < 1001; n++) answer(`key n${n}`);
    const request = jobRequest({ client: 'sso ada', groups: ['biology', 'art'] });
    ledger.jobEnded(request, jobDone(), { ...noBill, inputTokens: 10, costUsd: 0.5 });
    await clock.advance(100 * dayMs);
    expect(ledger.report(null, { ...always, groups: ['month'] })).toMatchObject([{ tokens: { input: 10 } }]);
    const all = ledger.report(null, { ...always, groups: ['client'], hasGroupUsage: true });
    const tokens = { input: 10, cached_input: 0, cache_write: 0, output: 0 };
    const usage = { jobs: none, tokens, cost_usd: 0.5, model_seconds: 0 };
    expect(all.filter(({ client = '' }) => client.startsWith('group '))).toMatchObject([
      { client: 'group art', kind: 'other', ...usage },
      { client: 'group biology', kind: 'other', ...usage },
    ]);
  });

  it('has no cost and no tokens if the CLI reports none', () => {
    const { ledger, answer } = createLedger();
    answer('address 192.0.2.1');
    const tokens = { input: 0, cached_input: 0, cache_write: 0, output: 0 };
    expect(ledger.report(null, always)).toEqual([
      {
        day: '2026-01-01',
        client: '192.0.2.1',
        kind: 'address',
        jobs: { ...none, ok: 1 },
        refused: 0,
        tokens,
        web_searches: 0,
        cost_usd: null,
        model_seconds: 0,
      },
    ]);
  });

  it('is separate from that of all others, even of one with the same name', () => {
    const { ledger, answer } = createLedger();
    for (const client of ['user alice', 'key bob', 'key alice', 'key alice'] as const) answer(client);
    const names = (client: ClientText | null) =>
      ledger.report(client, always).map(({ kind, client: name, jobs }) => [kind, name, jobs.ok]);
    expect(names(null)).toEqual([
      ['user', 'alice', 1],
      ['key', 'alice', 2],
      ['key', 'bob', 1],
    ]);
    expect(names('key alice')).toEqual([['key', 'alice', 2]]);
    expect(names('key carol')).toEqual([]);
  });
});

it('The cost in a report has no trace of the sum of fractions', () => {
  const { ledger, answerOf } = createLedger();
  for (const costUsd of [0.1, 0.2, 0.000000001]) answerOf('opus', 'key alice', { costUsd });
  expect(ledger.report(null, always)[0]?.cost_usd).toBe(0.300000001);
});

it('Usage that an earlier version has stored is reported with all outcomes', () => {
  const { ledger } = createLedger();
  const names = { day: '2026-01-01', client: 'key alice' as const, model: '', account: '' };
  ledger.restoreRow({ ...names, ...noCharge, refused: 0, modelMs: 0, jobs: { ok: 1 } as UsageDelta['jobs'] });
  expect(ledger.report(null, always)[0]?.jobs).toEqual({ ...none, ok: 1 });
});

describe('The models in the usage of a client', () => {
  const byModel = { ...always, groups: ['client', 'model', 'account'] } as const;

  it('are those that have answered, with the account', () => {
    const { ledger, answerOf } = createLedger();
    answerOf('opus');
    answerOf('opus', 'key alice', { account: 'team', inputTokens: 9, cachedTokens: 5, cacheWriteTokens: 3 });
    answerOf('haiku');
    answerOf(null, 'key alice', { requested: 'unnamed' });
    ledger.countRefusal('key alice');
    expect(ledger.report('key alice', byModel)).toMatchObject([
      { client: 'alice', kind: 'key', model: null, account: null, jobs: { ok: 1 }, refused: 1 },
      { model: 'haiku', account: null, jobs: { ok: 1 }, refused: 0 },
      { model: 'opus', account: null, jobs: { ok: 1 } },
      {
        ...{ model: 'opus', account: 'team', jobs: { ok: 1 } },
        tokens: { input: 9, cached_input: 5, cache_write: 3, output: 0 },
      },
    ]);
    expect(ledger.report(null, always)).toMatchObject([
      { day: '2026-01-01', client: 'alice', jobs: { ok: 4 }, refused: 1 },
    ]);
    expect(Object.keys(ledger.report(null, { ...always, groups: ['model'] })[0] ?? {})).toEqual([
      ...['model', 'jobs', 'refused', 'tokens', 'web_searches', 'cost_usd', 'model_seconds'],
    ]);
  });

  it('never include the name of a model that has not answered, and a failed job has the model that last did', () => {
    const { ledger, answerOf } = createLedger();
    const fail = (bill: Partial<Bill>) =>
      ledger.jobEnded(jobRequest({ client: 'key alice' }), jobFailed('timeout'), { ...noBill, ...bill });
    fail({ requested: 'invented', reported: 'invented' });
    answerOf('claude-opus-5', 'key alice', { requested: 'opus' });
    fail({ requested: 'opus' });
    fail({ requested: 'haiku', reported: 'claude-haiku-5', outputTokens: 3 });
    expect(ledger.report('key alice', byModel).map(({ model, jobs }) => [model, jobs.ok, jobs.timeout])).toEqual([
      [null, 0, 1],
      ['claude-haiku-5', 0, 1],
      ['claude-opus-5', 1, 1],
    ]);
  });
});

describe('The months of usage', () => {
  const byMonth = { ...always, groups: ['month', 'client'] } as const;

  it('are at most 24, and days that are no longer stored count for them', async () => {
    const { clock, ledger, answerOf } = createLedger();
    for (let day = 0; day < 365 * 3; day++) {
      answerOf('opus', 'key alice', { costUsd: 0.5 });
      await clock.advance(dayMs);
    }
    const months = ledger.report(null, byMonth);
    expect([months.length, months[0], months.at(-1)?.month]).toMatchObject([
      24,
      { month: '2027-01', client: 'alice', kind: 'key', jobs: { ok: 31 }, cost_usd: 15.5 },
      '2028-12',
    ]);
    expect(ledger.report(null, { ...byMonth, groups: ['month', 'day'] })).toHaveLength(90);
    const march = { since: '2027-03-01', until: '2027-04-30' };
    expect(ledger.report(null, { ...byMonth, ...march }).map(({ month, jobs }) => [month, jobs.ok])).toEqual([
      ['2027-03', 31],
      ['2027-04', 30],
    ]);
    expect(ledger.report(null, { ...march, since: '2027-03-02', groups: ['model'] })).toMatchObject([
      { jobs: { ok: 30 } },
    ]);
    expect(ledger.forget('key alice')).toBe(90 + 22);
    expect(ledger.report(null, byMonth)).toEqual([]);
  });
});

describe('The days of usage', () => {
  it('are days in UTC, the earliest first, and can be selected by a range', async () => {
    const { clock, ledger, answer } = createLedger();
    for (let day = 0; day < 4; day++) {
      answer('key alice');
      await clock.advance(dayMs);
    }
    const days = (period: Partial<Period>) => ledger.report(null, { ...always, ...period }).map(({ day }) => day);
    expect(days({})).toEqual(['2026-01-01', '2026-01-02', '2026-01-03', '2026-01-04']);
    expect(days({ since: '2026-01-03' })).toEqual(['2026-01-03', '2026-01-04']);
    expect(days({ since: '2026-01-02', until: '2026-01-03' })).toEqual(['2026-01-02', '2026-01-03']);
    expect(days({ until: '2025-12-31' })).toEqual([]);
  });

  it('are at most 90: the oldest is only part of its month', async () => {
    const { clock, ledger, answer } = createLedger();
    for (let day = 0; day < 100; day++) {
      answer('key alice');
      await clock.advance(dayMs);
    }
    const days = ledger.report(null, always).map(({ day }) => day);
    expect([days.length, days[0], days.at(-1)]).toEqual([90, '2026-01-11', '2026-04-10']);
  });
});

describe('The memory of the usage ledger', () => {
  it('is limited: for each day, the first 1,000 clients are listed and the rest are combined', () => {
    const { ledger, answer } = createLedger();
    for (let number = 0; number < 1500; number++) answer(`address 2001:db8::${number}`);
    answer('address 2001:db8::7');
    ledger.countRefusal('address 2001:db8::1400');
    const rows = ledger.report(null, always);
    expect(rows).toHaveLength(1001);
    expect(rows.reduce((sum, { jobs }) => sum + jobs.ok, 0)).toBe(1501);
    expect(rows.find(({ kind }) => kind === 'other')).toMatchObject({ client: 'other', jobs: { ok: 500 }, refused: 1 });
    expect(rows.find(({ client }) => client === '2001:db8::7')?.jobs.ok).toBe(2);
  });

  it('holds at most 20,000 rows of days: the oldest days are added to their month', async () => {
    const { clock, ledger, answer } = createLedger();
    for (let day = 0; day < 27; day++) {
      for (let number = 0; number < 800; number++) answer(`address ${number}`);
      await clock.advance(dayMs);
    }
    const rows = ledger.report(null, always);
    expect([rows.length, rows[0]?.day]).toEqual([20_000, '2026-01-03']);
    for (const until of [null, '2026-01-28', '2026-01-31']) {
      const months = ledger.report(null, { since: '2026-01-01', until, groups: ['month'] });
      expect(months).toMatchObject([{ month: '2026-01', jobs: { ok: 27 * 800 } }]);
    }
  });

  it('holds all 24 months, however many clients there are', async () => {
    const { clock, ledger, answer } = createLedger();
    for (let month = 0; month < 30; month++) {
      for (let number = 0; number < 600; number++) answer(`address ${number}`);
      await clock.advance(30 * dayMs);
    }
    const months = ledger.report(null, { ...always, groups: ['month'] });
    expect([months[0]?.month, months.length]).toEqual(['2026-06', 24]);
  });

  it('is limited even if a client invents names of models and its CLI accepts all of them', () => {
    const { ledger, answerOf } = createLedger();
    for (let n = 0; n < 5000; n++) answerOf(`model-${n % 1000}`, `key app/${n % 300}`);
    for (let n = 0; n < 1000; n++) answerOf(`model-${n}`, 'key alice');
    answerOf('x'.repeat(129), 'key alice');
    answerOf('opus', 'key bob');
    answerOf('haiku', 'key bob');
    const rows = (client: ClientText | null) => ledger.report(client, { ...always, groups: ['client', 'model'] });
    expect(rows('key alice')).toHaveLength(21);
    expect(rows('key alice').find(({ model }) => model === 'other')).toMatchObject({ jobs: { ok: 981 } });
    expect(rows('key bob').map(({ model }) => model)).toEqual(['haiku', 'opus']);
    expect(rows(null).length).toBeLessThan(300 + 500 + 300 + 30);
  });
});

describe('The growth of usage', () => {
  it('is recorded once it is requested, and returned once', async () => {
    const { clock, ledger, answer } = createLedger();
    answer('key alice');
    expect(ledger.takeGrowth()).toEqual([]);
    ledger.keepGrowth();
    answer('key alice');
    answer('key alice');
    ledger.countRefusal('key bob');
    const [alice, bob] = ledger.takeGrowth();
    expect(alice).toMatchObject({ day: '2026-01-01', client: 'key alice', jobs: { ...none, ok: 2 }, refused: 0 });
    expect(bob).toMatchObject({ client: 'key bob', jobs: none, refused: 1, costUsd: null });
    expect(ledger.takeGrowth()).toEqual([]);
    answer('key alice');
    await clock.advance(dayMs);
    answer('key alice');
    expect(ledger.takeGrowth().map(({ day, jobs }) => [day, jobs.ok])).toEqual([
      ['2026-01-01', 1],
      ['2026-01-02', 1],
    ]);
  });

  it('has the name under which it was counted', () => {
    const { ledger, answer } = createLedger();
    ledger.keepGrowth();
    for (let n = 0; n < 600; n++) answer(`key app/${n}`);
    const growth = ledger.takeGrowth();
    expect([growth.length, growth.find(({ client }) => client === 'key app')?.jobs.ok]).toEqual([501, 100]);
  });

  it('can be restored into another ledger, and is not part of its growth', () => {
    const { clock, ledger, answer } = createLedger();
    ledger.keepGrowth();
    for (const client of ['key alice', 'user bob'] as const) answer(client);
    ledger.countRefusal('key alice');
    const restored = new UsageLedger(clock);
    for (const row of ledger.takeGrowth()) restored.restoreRow(row);
    expect(restored.report(null, always)).toEqual(ledger.report(null, always));
    restored.keepGrowth();
    restored.countRefusal('key alice');
    expect(restored.report('key alice', always)).toMatchObject([{ refused: 2, jobs: { ok: 1 } }]);
    expect(restored.takeGrowth()).toMatchObject([{ refused: 1, jobs: none }]);
  });

  it('is removed with its client', () => {
    const { ledger, answer } = createLedger();
    ledger.keepGrowth();
    for (const client of ['key alice', 'key bob'] as const) answer(client);
    expect([ledger.forget('key alice'), ledger.forget('key alice')]).toEqual([1, 0]);
    expect(ledger.report(null, always).map(({ client }) => client)).toEqual(['bob']);
    expect(ledger.takeGrowth().map(({ client }) => client)).toEqual(['key bob']);
  });
});

import { Notices, needsNotice } from '../../../../src/features/webhooks/notices.js';
import type { Notice } from '../../../../src/features/webhooks/webhooks.js';
import type { LimitUse } from '../../../../src/shared/api/limit-use.js';
import type { JobForm } from '../../../../src/shared/background.js';
import type { QuotaWindow } from '../../../../src/shared/health.js';
import { loginOf } from '../../../support/agents/logins.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { jobDone, jobFailed, jobRequest, plainForm } from '../../../support/jobs/job-records.js';

const resets_at = '2026-02-01T00:00:00.000Z';

function use(client: string, used: number, max = 100): LimitUse {
  const kind = client.startsWith('@') ? 'group' : 'key';
  return { client, kind, resets_at, tokens: { max, used, period: 'month', resets_at }, cost_usd: null };
}

function createNotices() {
  const sent: Notice[] = [];
  const clock = new FakeClock();
  const seen = { budgets: [] as LimitUse[], windows: [] as QuotaWindow[], needsLogin: false };
  const health = {
    get needsLogin() {
      return seen.needsLogin;
    },
    windows: {
      get current() {
        return seen.windows;
      },
    },
  };
  const clis = [{ ...loginOf('claude'), health }];
  const notices = new Notices({
    send: (notice) => sent.push(notice),
    budgets: () => seen.budgets,
    clis,
    clock,
    host: 'relay-1',
  });
  const types = () => sent.splice(0).map(({ type }) => type);
  return { notices, sent, seen, clock, types };
}

describe('A budget', () => {
  it('is reported once at 80 % and once at 100 %, for each period and limit', () => {
    const { notices, seen, sent, types } = createNotices();
    const check = (...budgets: LimitUse[]) => {
      seen.budgets = budgets;
      notices.checkConditions();
    };
    check(use('@biology', 79));
    expect(types()).toEqual([]);
    check(use('@biology', 80), use('ada', 5));
    check(use('@biology', 99), use('ada', 5));
    const data = { client: '@biology', budget: 'tokens', max: 100, used: 80, period: 'month', resets_at };
    expect(sent).toMatchObject([{ client: '', type: 'budget.nearly_used', data }]);
    expect(types()).toHaveLength(1);
    check(use('@biology', 120), use('ada', 100));
    expect(sent.map(({ client }) => client)).toEqual(['', 'key ada']);
    expect(types()).toEqual(['budget.used_up', 'budget.used_up']);
    check(use('@biology', 130, 150));
    expect(types()).toEqual(['budget.nearly_used']);
  });

  it('is another one for a key and a person of the same name', () => {
    const { notices, seen, sent } = createNotices();
    seen.budgets = [use('ada', 90), { ...use('ada', 90), kind: 'sso' }];
    notices.checkConditions();
    expect(sent.map(({ client, data }) => [client, data])).toMatchObject([
      ['key ada', { client: 'ada', kind: 'key' }],
      ['sso ada', { client: 'ada', kind: 'sso' }],
    ]);
    expect(new Set(sent.map(({ id }) => id)).size).toBe(2);
  });

  it('has the same id on each host and after a restart, so that the store keeps one notice', () => {
    const [one, other] = [createNotices(), createNotices()];
    for (const { notices, seen } of [one, other]) {
      seen.budgets = [use('ada', 90)];
      notices.checkConditions();
    }
    expect(one.sent.map(({ id }) => id)).toEqual(other.sent.map(({ id }) => id));
    expect(one.sent[0]?.id).toMatch(/^[0-9a-f]{32}$/);
  });

  it('is compared every five seconds', async () => {
    const { notices, seen, clock, types } = createNotices();
    notices.startChecks();
    seen.budgets = [use('ada', 90)];
    await clock.advance(4999);
    expect(types()).toEqual([]);
    await clock.advance(1);
    expect(types()).toEqual(['budget.nearly_used']);
  });
});

describe('A quota window', () => {
  it('is reported at 90 % or if it is used up, once until its reset', () => {
    const { notices, seen, sent, types } = createNotices();
    const window = (utilization: number | null, resetsAt: number | null, status: QuotaWindow['status'] = 'allowed') => {
      seen.windows = [{ name: 'five_hour', status, utilization, resetsAt }];
      notices.checkConditions();
    };
    const reset = Date.parse(resets_at);
    window(0.89, reset);
    expect(types()).toEqual([]);
    window(0.9, reset);
    window(0.95, reset);
    const data = { host: 'relay-1', cli: 'claude', window: 'five_hour', utilization: 0.9, resets_at };
    expect(sent).toMatchObject([{ type: 'quota.nearly_used', data }]);
    expect(types()).toHaveLength(1);
    window(0.1, reset + 1000);
    window(0.91, reset + 1000);
    expect(types()).toHaveLength(1);
    window(null, null, 'rejected');
    window(0.1, null);
    window(null, null, 'rejected');
    expect(types()).toHaveLength(2);
  });
});

describe('A login', () => {
  it('is reported when it is needed, and again only after it has worked', () => {
    const { notices, seen, sent } = createNotices();
    for (const needsLogin of [false, true, true, false, true]) {
      seen.needsLogin = needsLogin;
      notices.checkConditions();
    }
    expect(sent).toMatchObject(Array(2).fill({ type: 'login.needed', data: { host: 'relay-1', cli: 'claude' } }));
    expect(sent[0]?.id).not.toBe(sent[1]?.id);
  });
});

describe('The end of a background job', () => {
  it.each<[Partial<JobForm> & { readonly callbackUrl?: string }, boolean]>([
    [{}, true],
    [{ isFollowed: true }, false],
    [{ isFollowed: true, callbackUrl: 'https://receiver.example/' }, true],
  ])('of the form %j needs a notice: %s', (differences, isNeeded) => {
    expect(needsNotice({ ...plainForm, ...differences })).toBe(isNeeded);
  });

  it('is reported with its outcome, and without what was asked and answered', () => {
    const { notices, sent } = createNotices();
    const request = jobRequest({ client: 'key ada', text: 'a secret question' });
    const callbackUrl = 'https://secret.example/';
    notices.jobEnded({ id: 'j1', request, end: jobDone({ text: 'a secret answer' }), callbackUrl });
    const failure = { code: 'timeout', message: 'a secret message' } as const;
    notices.jobEnded({ id: 'j2', request, end: jobFailed('timeout', { failure }), callbackUrl: undefined });
    expect(sent).toMatchObject([
      { id: 'job_j1', client: 'key ada', type: 'job.ended', data: { job_id: 'j1', outcome: 'ok', error: null } },
      {
        id: 'job_j2',
        client: 'key ada',
        data: { job_id: 'j2', client: 'key ada', outcome: 'timeout', error: 'timeout' },
      },
    ]);
    expect(JSON.stringify(sent)).not.toContain('secret');
  });
});

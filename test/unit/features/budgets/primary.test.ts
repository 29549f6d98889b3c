import { Registry } from 'prom-client';
import { createBudgets, usedRatio } from '../../../../src/features/budgets/primary.js';
import { Clients } from '../../../../src/primary/access/clients.js';
import type { PrimaryCore } from '../../../../src/primary/features/feature.js';
import { noBill } from '../../../../src/primary/jobs/bill.js';
import { addFigures } from '../../../../src/primary/observe/state-metrics.js';
import type { LimitUse } from '../../../../src/shared/api/limit-use.js';
import type { ClientText } from '../../../../src/shared/client.js';
import { type ApiKey, digestOf, plainOptions } from '../../../../src/shared/config/api-keys.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { Exposition } from '../../../support/documents/exposition.js';
import { budgetOptions } from '../../../support/jobs/counted-budgets.js';
import { jobDone, jobRequest } from '../../../support/jobs/job-records.js';
import { usagePart } from '../../../support/jobs/usage-part.js';

it('The metric of budgets has the used share of each budget of a key, for at most 200 keys, and drops a key without a budget', async () => {
  const registry = new Registry();
  const period = { period: 'month', resets_at: '' } as const;
  const tokens = { max: 4, used: 5, ...period };
  const use = (client: string) => ({ client, kind: 'key' as const, resets_at: '', tokens, cost_usd: null });
  let budgets: LimitUse[] = [{ ...use('alice'), cost_usd: { max: 2, used: 1, ...period } }];
  const { name, read: readShares, ...metric } = usedRatio(() => budgets);
  addFigures(registry, name, { type: 'gauge', ...metric }, readShares);
  const read = async () => new Exposition(await registry.metrics());
  expect((await read()).value('client_budget_used_ratio{client="alice",budget="tokens"}')).toBe(1.25);
  expect((await read()).value('client_budget_used_ratio{client="alice",budget="cost"}')).toBe(0.5);
  budgets = [
    use('ada'),
    { ...use('ada'), kind: 'sso', tokens: { ...tokens, used: 1 } },
    { ...use('@*'), kind: 'service' },
  ];
  const both = await read();
  const series = [
    'client="ada",budget="tokens"',
    'client="ada",kind="sso",budget="tokens"',
    'client="@*",budget="tokens"',
  ];
  expect(series.map((labels) => both.value(`client_budget_used_ratio{${labels}}`))).toEqual([1.25, 0.25, 1.25]);
  budgets = Array.from({ length: 300 }, (_, number) => use(`key-${number}`));
  const ofModels = Array.from({ length: 300 }, (_, number) => ({ ...use('key-0'), model: `model-${number}` }));
  budgets = [...ofModels, ...budgets];
  const { samples } = await read();
  expect(samples).toHaveLength(200);
  expect(samples.filter(({ labels }) => labels.model !== undefined)).toEqual([]);
  expect(samples.filter(({ labels }) => labels.client === 'alice')).toEqual([]);
});

it('The use of budgets is that of the own key and its group, and for an administrator that of all', () => {
  const [clock, options] = [new FakeClock(), budgetOptions({ tokens: { max: 5, period: 'day' } })];
  const keyOf = (name: string, group: string | null): ApiKey => {
    return { name, digest: digestOf(name), ...plainOptions, ...options, group };
  };
  const clients = new Clients(
    {
      ...{ rateMaxRequests: 0, rateWindowMs: 1000, needsKey: true, apiKeys: [], madeKeys: [], personLines: [] },
      namedKeys: [keyOf('ada', 'biology'), keyOf('bob', null)],
      groupLines: ['biology', '*'].map((name) => ({ name, ...options })),
    },
    clock,
  );
  const usage = usagePart(clock);
  const part = createBudgets({ host: { clock }, clients, earlierParts: [usage], router: {} } as unknown as PrimaryCore);
  const listed = (client: ClientText | null) => part.limitUsesOf?.(client).map((use) => use.client);
  expect(listed(null)).toEqual(['@biology', '@*', 'ada', 'bob']);
  expect(listed('key ada/x')).toEqual(['ada', '@biology']);
  expect(listed('user eve')).toEqual([]);
  usage.job.jobEnded(jobRequest({ client: 'key ada' }), jobDone(), { ...noBill, outputTokens: 5 });
  const start = (client: ClientText) => part.job?.start?.(jobRequest({ client }));
  expect(() => start('key ada/x')).toThrow('the daily budget of the API key is used up: 5 of 5 tokens');
  expect(() => start('key bob')).toThrow('the daily budget of the service is used up');
});

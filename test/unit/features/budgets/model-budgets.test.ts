import { createBudgets } from '../../../../src/features/budgets/primary.js';
import { Clients } from '../../../../src/primary/access/clients.js';
import type { PrimaryCore } from '../../../../src/primary/features/feature.js';
import { type Bill, noBill } from '../../../../src/primary/jobs/bill.js';
import type { ClientText } from '../../../../src/shared/client.js';
import { digestOf } from '../../../../src/shared/config/api-keys.js';
import { readKeysFile } from '../../../../src/shared/config/keys-file.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { keyOptions } from '../../../support/basics/key-options.js';
import { jobDone, jobFailed, jobRequest } from '../../../support/jobs/job-records.js';
import { UsageInMemory, usagePart } from '../../../support/jobs/usage-part.js';

const period = { since: null, until: null } as const;
const aliases: Readonly<Record<string, string>> = { best: 'opus' };
const models = ['opus', 'sonnet', 'default'];
const cli = { adapter: { models, shortNames: ['opus', 'sonnet'] } };

/** Budgets over the usage of a service with this keys file, whose aliases have a fixed list. */
function budgetsOf(lines: readonly string[], clock = new FakeClock(), store: UsageInMemory | null = null) {
  const { keys: namedKeys, faults, ...rest } = readKeysFile(lines.join('\n'), keyOptions);
  expect(faults).toEqual([]);
  const settings = { rateMaxRequests: 0, rateWindowMs: 1000, needsKey: true, apiKeys: [], namedKeys, ...rest };
  const [clients, usage] = [new Clients(settings, clock), usagePart(clock, { usage: store })];
  const names = {
    resolveConfigured: (name: string) => aliases[name] ?? name,
    isModel: (name: string) => models.includes(name),
    split: (model: string) => ({ cli, model }),
    choice: { allowed: null },
  };
  const parts = { host: { clock }, clients, router: { names }, earlierParts: [usage] };
  const part = createBudgets(parts as unknown as PrimaryCore);
  const groupsOf = (client: ClientText) => clients.countedGroupsOf(client);
  return {
    ...{ clients, usage, part },
    /** Ends a job that has used one token. */
    ended: (client: ClientText, bill: Partial<Bill>, model: string | null = null) => {
      const end = model === null ? jobFailed('timeout') : jobDone({ model });
      const request = jobRequest({ client, groups: groupsOf(client) });
      usage.job.jobEnded(request, end, { ...noBill, outputTokens: 1, costUsd: 1, ...bill });
    },
    /** Returns the error of a job with a route to this model; null if it may start. */
    refusal: (client: ClientText, label: string | null): string | null => {
      const request = jobRequest({ client, groups: groupsOf(client) });
      try {
        part.job?.start?.(request);
        part.job?.checkRoute?.(request, { label } as never);
        return null;
      } catch (error) {
        return (error as Error).message;
      }
    },
    uses: (client: ClientText | null) =>
      part.limitUsesOf?.(client).map(({ client, model, tokens }) => [client, model, tokens?.used]),
  };
}

const lineOf = (name: string, options: string) => `${name}:sha256:${digestOf(name)}:${options}`;

describe('A budget for one model', () => {
  it('refuses this model alone, by its name and by an alias, and names itself, its figures and the reset', () => {
    const { ended, refusal, uses } = budgetsOf([lineOf('ada', 'best:tokens=2/day')]);
    for (let count = 0; count < 2; count++) {
      expect(refusal('key ada', 'opus')).toBeNull();
      ended('key ada', { requested: 'opus' }, 'opus');
    }
    ended('key ada', { requested: 'sonnet' }, 'sonnet');
    expect(refusal('key ada/x', 'opus')).toMatch(
      /^the daily budget of the API key for the model best is used up: 2 of 2 tokens; it resets at \d{4}-/,
    );
    expect([refusal('key ada', 'sonnet'), refusal('key bob', 'opus')]).toEqual([null, null]);
    expect(uses('key ada')).toEqual([['ada', 'best', 2]]);
  });

  it('counts each job of the model that answered, under whichever name it was requested', () => {
    const { ended, refusal } = budgetsOf([lineOf('ada', 'opus:tokens=3/day')]);
    ended('key ada', { requested: 'opus' }, 'claude-opus-9');
    ended('key ada', { requested: 'claude-opus-9' }, 'claude-opus-9');
    ended('key ada', { requested: '' }, 'claude-opus-9');
    const names = ['opus', 'claude-opus-9', null];
    expect(names.map((name) => refusal('key ada', name))).toEqual(names.map(() => expect.stringContaining('3 of 3')));
    expect(refusal('key ada', 'sonnet')).toBeNull();
  });

  it('under a short name limits each model with this word in its name, also if no job has asked for the short name', () => {
    const { ended, refusal } = budgetsOf([lineOf('ada', 'opus:tokens=2/day')]);
    ended('key ada', { requested: 'claude-opus-9' }, 'claude-opus-9');
    ended('key ada', { requested: '' }, 'claude-opus-9');
    for (const name of ['claude-opus-9', 'claude-opus-8-1[1m]', 'OPUS', 'us.anthropic.claude-opus-9-v1:0', null])
      expect(refusal('key ada', name)).toContain('2 of 2');
    for (const name of ['sonnet', 'opusplan', 'claude-sonnet-9']) expect(refusal('key ada', name)).toBeNull();
  });

  it('counts a job that another model has answered for that model, and a failed job for the requested one', () => {
    const { ended, uses } = budgetsOf([lineOf('ada', 'opus:tokens=9/day,sonnet:tokens=9/day')]);
    ended('key ada', { requested: 'sonnet', reported: 'sonnet-5' }, 'sonnet-5');
    ended('key ada', { requested: 'opus', outputTokens: 4 });
    expect(uses('key ada')).toEqual([
      ['ada', 'opus', 4],
      ['ada', 'sonnet', 1],
    ]);
  });

  it('of a group counts all members together, and of each member each alone', () => {
    const { ended, refusal, uses, part } = budgetsOf([
      lineOf('ada', 'group=biology'),
      lineOf('bob', 'group=biology'),
      '@biology tokens=50/month opus:tokens=3/day each=opus:tokens:2/day in=institute',
      '@institute best:tokens=90/week,opus:tokens=80/day',
      '@* opus:tokens=99/day',
    ]);
    for (const name of ['ada', 'ada', 'bob']) ended(`key ${name}`, { requested: 'opus' }, 'opus');
    expect(uses('key ada')).toEqual([
      ['ada', 'opus', 2],
      ['@biology', undefined, 3],
      ['@biology', 'opus', 3],
      ['@institute', 'best', 3],
      ['@institute', 'opus', 3],
    ]);
    expect(refusal('key ada', 'opus')).toContain('of the API key for the model opus is used up: 2 of 2');
    expect(refusal('key bob', 'opus')).toContain('of the group biology for the model opus is used up: 3 of 3');
    expect(refusal('key bob', 'sonnet')).toBeNull();
    expect(uses(null)).toContainEqual(['@*', 'opus', 3]);
    const [gauge] = part.gauges ?? [];
    expect(gauge?.labels).toEqual(['client', 'kind', 'model', 'budget']);
    expect(gauge?.read()).toMatchObject({
      ada: { '': { opus: { tokens: 1 } } },
      '@biology': { '': { opus: { tokens: 1 } } },
    });
  });

  it('is not in reports, survives a restart with the models that have answered, and is deleted with its client', async () => {
    const lines = [lineOf('ada', 'opus:tokens=1/day')];
    const store = new UsageInMemory();
    const before = budgetsOf(lines, new FakeClock(), store);
    await before.usage.restored();
    before.ended('key ada', { requested: 'opus' }, 'claude-opus-9');
    expect(await before.usage.report(null, { ...period, groups: ['client'] })).toMatchObject([{ client: 'ada' }]);
    await before.usage.stop();
    const after = budgetsOf(lines, new FakeClock(), store);
    await after.usage.restored();
    expect(after.refusal('key ada', 'claude-opus-9')).toContain('1 of 1 tokens');
    const stored = await after.usage.report(null, { ...period, groups: ['client'], hasGroupUsage: true });
    expect(stored.map(({ client }) => client)).toEqual(['ada', 'ada/%opus']);
    expect(await after.usage.purgeClient('key ada/%opus')).toEqual({ usage: 1 });
  });

  it('for a model that no program has causes a warning', () => {
    const { part } = budgetsOf([lineOf('ada', 'opsu:tokens=1/day'), '@art each=best:tokens:1/day']);
    expect(part.findKeyWarnings?.()).toEqual([
      'MODEL_API_KEYS_FILE: a budget is for opsu, but no model CLI has a model of this name',
    ]);
  });
});

import { FallbackRoutes } from '../../../../src/features/fallbacks/fallback-routes.js';
import { fallbacks } from '../../../../src/features/fallbacks/feature.js';
import { createFallbacks } from '../../../../src/features/fallbacks/primary.js';
import type { FallbackValues } from '../../../../src/features/fallbacks/shared.js';
import type { Adapter } from '../../../../src/primary/cli/contract/adapter.js';
import type { ModelCli } from '../../../../src/primary/cli/model-cli.js';
import type { AtLeastOne, NamedAdapter } from '../../../../src/primary/cli/models.js';
import { ModelNames, ModelRouter, type Route } from '../../../../src/primary/cli/route.js';
import type { PrimaryCore } from '../../../../src/primary/features/feature.js';
import { FeatureHooks } from '../../../../src/primary/features/feature-hooks.js';
import type { ClientText } from '../../../../src/shared/client.js';
import { loadConfig } from '../../../../src/shared/config/config.js';
import type { JobRequest } from '../../../../src/shared/job.js';
import { LogBook } from '../../../support/basics/log-book.js';
import { jobRequest } from '../../../support/jobs/job-records.js';

function cli(name: string, models: readonly string[] | null = null, needsModel = false): NamedAdapter {
  return { name, adapter: { models, needsModel } as unknown as Adapter };
}

const [claude, codex, local] = [cli('claude'), cli('codex', ['gpt-5', 'mini']), cli('local', null, true)];
const three = [claude, codex, local] as const;

async function routesOf(
  clis: AtLeastOne<NamedAdapter>,
  env: Record<string, string> = {},
  modelsOf: (client: ClientText) => readonly string[] | null = () => null,
) {
  const config = await loadConfig(env, async () => '', undefined, [fallbacks]);
  const values = config.featureValues as FallbackValues;
  const settings = { rules: values.MODEL_API_FALLBACKS, waitMs: values.MODEL_API_FALLBACK_WAIT_SECONDS };
  const modelClis = clis as unknown as AtLeastOne<ModelCli>;
  const router = new ModelRouter(new ModelNames(config, clis), modelClis, (client) => ({ models: modelsOf(client) }));
  const routes = new FallbackRoutes(router, { ...settings, mayFallBack: (client) => client !== 'key steady' });
  return { router, routes };
}

describe('The fallbacks of a request', () => {
  const rules = { MODEL_API_FALLBACKS: 'claude/opus>codex/mini>claude@spare/opus>codex,codex>claude' };
  const labelsOf = async (
    request: Partial<JobRequest>,
    env: Record<string, string> = rules,
    models: readonly string[] | null = null,
  ) => {
    const { router, routes } = await routesOf(three, env, () => models);
    const whole = { model: 'claude/opus', client: 'key a' as const, ...request };
    return routes.fallbacks(router.route(whole), whole).map(({ label, account }) => [label, account]);
  };

  it.each<[string, Partial<JobRequest>, unknown[]]>([
    [
      'come from the rule for its model',
      {},
      [
        ['codex/mini', null],
        ['claude/opus', 'spare'],
        ['codex', null],
      ],
    ],
    ['come from the rule for the default of a CLI', { model: 'codex' }, [['claude', null]]],
    ['are none without a rule', { model: 'claude/sonnet' }, []],
    [
      'are those that it names',
      { fallbacks: ['local/x', 'codex/mini'] },
      [
        ['local/x', null],
        ['codex/mini', null],
      ],
    ],
    ['are none if it wants none', { fallbacks: [] }, []],
    ['are none if its key allows none', { client: 'key steady' }, []],
    ['are without models that it may not name', { fallbacks: ['codex/none', 'codex'] }, [['codex', null]]],
  ])('%s', async (_what, request, fallbacks) => {
    expect(await labelsOf(request)).toEqual(fallbacks);
  });

  it('are without models that its key may not name', async () => {
    expect(await labelsOf({}, rules, ['claude/opus', 'codex/mini'])).toEqual([
      ['codex/mini', null],
      ['claude/opus', 'spare'],
    ]);
  });

  it('have the short names of the only CLI', async () => {
    const { router, routes } = await routesOf([claude], { MODEL_API_FALLBACKS: 'claude/opus>claude>haiku' });
    const request = { model: 'opus', client: 'key a' as const };
    const fallbacks = routes.fallbacks(router.route(request), request);
    expect(fallbacks.map(({ adapterModel, circuit }) => [adapterModel, circuit])).toEqual([
      [null, ''],
      ['haiku', 'haiku'],
    ]);
  });

  it('are checked if the request names them', async () => {
    const { routes } = await routesOf(three);
    const request = { client: 'key a' as const };
    expect(() => routes.checkModels({ ...request, fallbacks: ['codex/none'] })).toThrow('model: must be one of');
    const steady = { ...request, client: 'key steady' as const };
    expect(() => routes.checkModels({ ...steady, fallbacks: ['codex'] })).toThrow('the API key has fallback=off');
    expect(() => routes.checkModels({ ...steady, fallbacks: [] })).not.toThrow();
  });
});

describe('A job that moves to another model', () => {
  it('is counted by CLI and reason, and logged', () => {
    const log = new LogBook();
    const router = { names: { resolveConfigured: (name: string) => name } };
    const core = { host: { log }, router, clients: {} } as unknown as PrimaryCore;
    const values = { MODEL_API_FALLBACKS: [], MODEL_API_FALLBACK_WAIT_SECONDS: 0 };
    const hooks = new FeatureHooks([createFallbacks(values)(core)]);
    const route = (label: string, model: string | null) => ({ cli: { label }, label: model }) as unknown as Route;
    const [team, spare] = [route('claude@team', 'opus'), route('claude@spare', null)];
    hooks.jobMoved(jobRequest({ requestId: 'first' }), team, spare, 'quota');
    hooks.jobMoved(jobRequest({ requestId: 'second' }), team, spare, 'quota');
    hooks.jobMoved(jobRequest({ requestId: 'third' }), spare, team, 'start');
    hooks.jobMoved(jobRequest(), route('constructor', null), route('toString', null), 'start');
    expect(hooks.counters.map(({ name, labels, read }) => [name, labels, read()])).toEqual([
      [
        'fallbacks_total',
        ['from', 'to', 'reason'],
        {
          'claude@team': { 'claude@spare': { quota: 2 } },
          'claude@spare': { 'claude@team': { start: 1 } },
          constructor: { toString: { start: 1 } },
        },
      ],
    ]);
    expect(log.events).toEqual(Array(4).fill('job_fell_back'));
    expect(log.entries.map(({ fields }) => fields)).toMatchObject([
      { request_id: 'first', from: 'opus', to: 'claude@spare', reason: 'quota' },
      { request_id: 'second' },
      { request_id: 'third', from: 'claude@spare', to: 'opus', reason: 'start' },
      { from: 'constructor', to: 'toString' },
    ]);
  });
});

import type { Adapter } from '../../../../src/primary/cli/contract/adapter.js';
import { catalogOf as listingOf, modelLister } from '../../../../src/primary/cli/model-catalog.js';
import {
  capabilitiesOf,
  fittingEffort,
  type ModelChoice,
  modelChoice,
  modelFor,
  narrowed,
} from '../../../../src/primary/cli/models.js';
import type { ModelEntry } from '../../../../src/shared/api/models.js';
import { loadConfig } from '../../../../src/shared/config/config.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';

const listed: readonly ModelEntry[] = [
  { id: 'default', name: 'The default', default: true },
  { id: 'opus', name: 'Opus', default: false, description: 'slow' },
  { id: 'haiku', name: 'Haiku', default: false },
];

async function catalogOf(choice: Partial<ModelChoice>, models: readonly ModelEntry[] | null = listed) {
  const whole = { fallback: null, allowed: null, label: choice.fallback ?? null, ...choice };
  const catalog = listingOf(
    modelLister(async () => models, new FakeClock()),
    whole,
  );
  return await catalog();
}

/** Returns all IDs; a star marks the default. */
async function idsOf(choice: Partial<ModelChoice>, models?: readonly ModelEntry[] | null): Promise<string[]> {
  const { models: entries } = await catalogOf(choice, models);
  return entries.map((model) => (model.default ? `${model.id}*` : model.id));
}

describe('The models that a request may name', () => {
  it.each<[string, Partial<ModelChoice>, readonly string[]]>([
    ['what the CLI lists', {}, ['default*', 'opus', 'haiku']],
    ['a default that it lists', { fallback: 'opus' }, ['default', 'opus*', 'haiku']],
    ['a default that it does not list', { fallback: 'opus-4-1' }, ['default', 'opus', 'haiku', 'opus-4-1*']],
    ['those allowed, listed or not', { fallback: 'opus-4-1', allowed: ['opus-4-1', 'haiku'] }, ['opus-4-1*', 'haiku']],
    ['those allowed, none of them listed', { fallback: 'b', allowed: ['a', 'b'] }, ['a', 'b*']],
    ['those of the adapter, the default first', { allowed: ['a', 'b'] }, ['a*', 'b']],
    ['each of them once', { fallback: 'haiku', allowed: ['haiku', 'haiku'] }, ['haiku*']],
  ])('are %s, and one of them is the default', async (_, choice, ids) => {
    expect(await idsOf(choice)).toEqual(ids);
  });

  it.each<[string, Partial<ModelChoice>, readonly string[]]>([
    ['the default', { fallback: 'opus' }, ['opus*']],
    ['those allowed', { fallback: 'a', allowed: ['a', 'b'] }, ['a*', 'b']],
    ['what it uses by itself', {}, ['default*']],
  ])('are %s if the CLI lists none', async (_, choice, ids) => {
    expect(await idsOf(choice, null)).toEqual(ids);
    expect(await idsOf(choice, [])).toEqual(ids);
  });

  it.each([[0], [2]])('have one default even if the CLI marks %d', async (marked) => {
    const models = listed.map((model, index) => ({ ...model, default: index < marked }));
    expect(await idsOf({}, models)).toEqual(['default*', 'opus', 'haiku']);
  });

  it('are listed with all details from the CLI', async () => {
    const { count, models } = await catalogOf({ fallback: 'opus', allowed: ['opus', 'a'] });
    expect([count, models]).toEqual([
      2,
      [
        { id: 'opus', name: 'Opus', default: true, description: 'slow' },
        { id: 'a', name: 'a', default: false },
      ],
    ]);
  });
});

describe('The list of models', () => {
  function listing(ask: () => Promise<readonly ModelEntry[] | null>) {
    const clock = new FakeClock();
    let asked = 0;
    const choice: ModelChoice = { fallback: null, allowed: null, label: null };
    const counted = () => {
      asked++;
      return ask();
    };
    const catalog = listingOf(modelLister(counted, clock), choice);
    return { clock, catalog, asked: () => asked };
  }

  it('is requested once in ten minutes, however many callers need it', async () => {
    const { clock, catalog, asked } = listing(async () => listed);
    await Promise.all([catalog(), catalog()]);
    await clock.advance(10 * 60_000 - 1);
    await catalog();
    expect(asked()).toBe(1);
    await clock.advance(1);
    expect((await catalog()).count).toBe(3);
    expect(asked()).toBe(2);
  });

  it('is requested again five seconds after a failure, and is short until then', async () => {
    let isInstalled = false;
    const { clock, catalog, asked } = listing(async () => {
      if (!isInstalled) throw new Error('not installed');
      return listed;
    });
    expect((await catalog()).models).toEqual([{ id: 'default', name: 'default', default: true }]);
    isInstalled = true;
    await clock.advance(4999);
    expect((await catalog()).count).toBe(1);
    expect(asked()).toBe(1);
    await clock.advance(1);
    expect((await catalog()).count).toBe(3);
  });
});

describe('The choice of a model', () => {
  async function choiceOf(env: Readonly<Record<string, string>>, models: readonly string[] | null) {
    const config = await loadConfig(env, () => Promise.reject(new Error('there is no file')));
    return modelChoice(config, { models } as Adapter);
  }

  it.each<[Readonly<Record<string, string>>, readonly string[] | null, ModelChoice]>([
    [{}, null, { fallback: null, allowed: null, label: null }],
    [{}, ['a', 'b'], { fallback: null, allowed: ['a', 'b'], label: 'a' }],
    [{ MODEL_API_DEFAULT_MODEL: 'c' }, null, { fallback: 'c', allowed: null, label: 'c' }],
    [{ MODEL_API_DEFAULT_MODEL: 'c' }, ['a', 'b'], { fallback: 'c', allowed: ['a', 'b', 'c'], label: 'c' }],
    [{ MODEL_API_DEFAULT_MODEL: 'b' }, ['a', 'b'], { fallback: 'b', allowed: ['a', 'b'], label: 'b' }],
    [
      { MODEL_API_ALLOWED_MODELS: 'x,y' },
      ['a'],
      { fallback: 'x', allowed: ['x', 'y'], limitedBy: 'MODEL_API_ALLOWED_MODELS', label: 'x' },
    ],
    [
      { MODEL_API_ALLOWED_MODELS: 'x,y', MODEL_API_DEFAULT_MODEL: 'y' },
      null,
      { fallback: 'y', allowed: ['x', 'y'], limitedBy: 'MODEL_API_ALLOWED_MODELS', label: 'y' },
    ],
  ])('prefers the operator, then the adapter: %j, %j', async (env, models, choice) => {
    expect(await choiceOf(env, models)).toEqual(choice);
  });

  it('is the requested model if it is allowed, else the fallback', () => {
    const choice: ModelChoice = { fallback: 'a', allowed: ['a', 'b'], label: 'a' };
    expect([modelFor('b', choice), modelFor(null, choice)]).toEqual(['b', 'a']);
    expect(() => modelFor('c', choice)).toThrow(
      expect.objectContaining({ code: 'validation_error', message: 'model: must be one of a, b' }),
    );
    expect(modelFor('c', { ...choice, allowed: null })).toBe('c');
    expect(modelFor(null, { ...choice, fallback: null })).toBeNull();
  });
});

describe('The choice of a client that may use only some models', () => {
  const choice: ModelChoice = { fallback: 'b', allowed: ['a', 'b', 'c'], label: 'b' };

  it('is that of the service if it has no limit', () => {
    expect(narrowed(choice, null)).toBe(choice);
  });

  it('retains the default of the service if the client may use it', () => {
    expect(modelFor(null, narrowed(choice, ['a', 'b']))).toBe('b');
  });

  it('otherwise uses the first model of the client as the default, never an unnamed one', () => {
    expect(modelFor(null, narrowed(choice, ['c', 'a']))).toBe('c');
    expect(modelFor(null, narrowed({ fallback: null, allowed: null, label: null }, ['x', 'y']))).toBe('x');
  });

  it('contains no model that the service does not allow', () => {
    const own = narrowed(choice, ['x', 'c']);
    expect(modelFor(null, own)).toBe('c');
    expect(() => modelFor('x', own)).toThrow('model: must be one of c');
    expect(() => modelFor('a', own)).toThrow('model: must be one of c');
  });

  it('may be empty, and then no request can be served', () => {
    for (const named of [null, 'a', 'x']) {
      expect(() => modelFor(named, narrowed(choice, ['x']))).toThrow('model: MODEL_API_ALLOWED_MODELS has none');
    }
  });
});

describe('An effort above high', () => {
  const rules = {
    thinking: ['adaptive'] as const,
    acceptsDemand: false,
    efforts: ['low', 'max'] as const,
    tokenFactor: 1,
  };
  const effort = (name: string) => name;

  it.each([
    ['max', { effort, rulesOf: () => rules }, 'max'],
    ['xhigh', { effort, rulesOf: () => rules }, 'low'],
    ['medium', { effort, rulesOf: () => rules }, 'low'],
    ['low', { effort, rulesOf: () => ({ ...rules, efforts: ['high'] as const }) }, 'high'],
    ['low', { effort, rulesOf: () => ({ ...rules, efforts: [] }) }, null],
    ['max', { effort }, 'high'],
    ['medium', { effort, rulesOf: () => ({ thinking: null, acceptsDemand: true, tokenFactor: 1 }) }, 'medium'],
    ['max', {}, null],
  ] as const)('is passed on only if the program lists it for the model: %s', (requested, extras, expected) => {
    expect(fittingEffort(requested, extras, 'opus')).toBe(expected);
  });

  it('is listed with the types of thinking, if they are known', () => {
    const own = { thinking_types: ['adaptive'], efforts: ['low', 'max'] };
    expect(capabilitiesOf({}, { effort, rulesOf: () => rules }, {}, 'opus')).toMatchObject(own);
    expect(capabilitiesOf({}, { effort }, {}, 'opus')).not.toHaveProperty('thinking_types');
  });
});

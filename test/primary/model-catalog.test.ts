import { ModelCatalog } from '../../src/primary/model-catalog.js';
import type { ModelChoice } from '../../src/primary/model-choice.js';
import type { ModelEntry } from '../../src/shared/api/models.js';
import { FakeClock } from '../support/fake-clock.js';

const listed: readonly ModelEntry[] = [
  { id: 'default', name: 'The default', default: true },
  { id: 'opus', name: 'Opus', default: false, description: 'slow' },
  { id: 'haiku', name: 'Haiku', default: false },
];

async function catalogOf(choice: Partial<ModelChoice>, models: readonly ModelEntry[] | null = listed) {
  const whole = { fallback: null, allowed: null, label: choice.fallback ?? null, ...choice };
  const catalog = new ModelCatalog(async () => models, whole, new FakeClock());
  return await catalog.list();
}

/** Every id, the default one with a star. */
async function idsOf(choice: Partial<ModelChoice>, models?: readonly ModelEntry[] | null): Promise<string[]> {
  const { models: entries } = await catalogOf(choice, models);
  return entries.map((model) => (model.default ? `${model.id}*` : model.id));
}

describe('the models a request may name', () => {
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
  ])('are %s where the CLI lists none', async (_, choice, ids) => {
    expect(await idsOf(choice, null)).toEqual(ids);
    expect(await idsOf(choice, [])).toEqual(ids);
  });

  it.each([[0], [2]])('hold one default where the CLI marks %d', async (marked) => {
    const models = listed.map((model, index) => ({ ...model, default: index < marked }));
    expect(await idsOf({}, models)).toEqual(['default*', 'opus', 'haiku']);
  });

  it('are told with all that the CLI says of them', async () => {
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

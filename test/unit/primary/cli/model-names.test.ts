import type { Adapter } from '../../../../src/primary/cli/contract/adapter.js';
import { type AtLeastOne, modelFor, type NamedAdapter, narrowed } from '../../../../src/primary/cli/models.js';
import { ModelNames, ModelRouter } from '../../../../src/primary/cli/route.js';
import { loadConfig } from '../../../../src/shared/config/config.js';

type Traits = Partial<Pick<Adapter, 'models' | 'modelForm' | 'needsModel'>>;

function cli(name: string, traits: Traits = {}): NamedAdapter {
  return { name, adapter: { models: null, ...traits } as unknown as Adapter };
}

const claude = cli('claude', { modelForm: /^claude-|^(opus|haiku)$/ });
const demo = cli('demo', { models: ['eliza', 'echo'] });
const agent = cli('agent', { modelForm: /^(?!agent\/.*\/)[^/]+\/./ });

async function routerOf(
  clis: AtLeastOne<NamedAdapter>,
  env: Record<string, string> = {},
  models: string[] | null = null,
) {
  const options = { models };
  return new ModelRouter(new ModelNames(await loadConfig(env, async () => ''), clis), clis, () => options);
}

async function namesOf(clis: AtLeastOne<NamedAdapter>, aliases = '', env: Record<string, string> = {}) {
  return (await routerOf(clis, { MODEL_API_MODEL_ALIASES: aliases, ...env })).names;
}

const listed = new Set(['gpt-5', 'sonnet', 'agent/grok']);

describe('A model name with one CLI', () => {
  it.each<[string, string]>([
    ['eliza', 'eliza'],
    ['default', 'default'],
    ['gpt-4o', 'echo'],
    ['demo/echo', 'echo'],
    ['demo', 'default'],
    ['demo/gpt-4o', 'gpt-4o'],
    ['demo/--flag', 'eliza'],
    ['demo/', 'eliza'],
    ['anything', 'eliza'],
    ['other/echo', 'eliza'],
    ['chain', 'gpt-4o'],
  ])('is a native model, an alias, a model prefixed with the CLI, or any other name: %s', async (name, target) => {
    const names = await namesOf([demo], 'gpt-4o=echo,*=eliza,eliza=echo,chain=gpt-4o');
    expect([names.needsList(name), names.resolveName(name)]).toEqual([false, target]);
  });

  it('may have the prefix by which clients of the Anthropic API see it, if the service knows the rest', async () => {
    const names = await namesOf([claude], 'mini=haiku');
    const known = (name: string) => names.resolveName(name, listed);
    for (const [name, target] of [
      ['anthropic/opus', 'opus'],
      ['anthropic/sonnet', 'sonnet'],
      ['anthropic/default', 'default'],
      ['anthropic/claude/opus', 'opus'],
      ['anthropic/mini', 'haiku'],
      ['anthropic/grok', 'anthropic/grok'],
      ['anthropic/', 'anthropic/'],
    ] as const)
      expect([name, known(name)]).toEqual([name, target]);
    expect([names.needsList('anthropic/sonnet'), names.needsList('sonnet')]).toEqual([true, false]);
    const several = await namesOf([claude, cli('codex')]);
    for (const name of ['codex/gpt-5', 'codex', 'claude/opus', 'opus'])
      expect(several.resolveName(`anthropic/${name}`, listed)).toBe(name);
    const own = await namesOf([agent]);
    for (const name of ['anthropic/claude-4', 'anthropic/x']) expect(own.resolveName(name, listed)).toBe(name);
  });

  it('is passed to the CLI if no alias matches', async () => {
    const names = await namesOf([claude], 'gpt-4o=haiku');
    for (const name of ['gpt-4', 'claude-next', 'openai/gpt-4o', 'claudette/x', 'codex'])
      expect([names.needsList(name), names.resolveName(name)]).toEqual([false, name]);
  });

  it('is preferred to an alias if it has the form of the CLI, without the list of models', async () => {
    const names = await namesOf([claude], 'claude-3=haiku,opus=haiku,*=opus');
    for (const name of ['claude-3', 'opus', 'haiku', 'claude-4'])
      expect([names.needsList(name), names.resolveName(name)]).toEqual([false, name]);
  });

  it('is preferred to an alias if the CLI lists it', async () => {
    const names = await namesOf([claude], 'gpt-5=haiku,*=opus');
    expect(['gpt-5', 'sonnet', 'other'].map((name) => names.needsList(name))).toEqual([true, true, true]);
    expect(['gpt-5', 'sonnet', 'other'].map((name) => names.resolveName(name, listed))).toEqual([
      'gpt-5',
      'sonnet',
      'opus',
    ]);
    expect(['gpt-5', 'sonnet', 'other'].map((name) => names.resolveName(name))).toEqual(['haiku', 'opus', 'opus']);
  });

  it('is preferred to any other if the operator configured it', async () => {
    const names = await namesOf([claude], 'gpt-4o=mine,*=haiku', { MODEL_API_DEFAULT_MODEL: 'usual' });
    for (const name of ['mine', 'usual'])
      expect([names.needsList(name), names.resolveName(name)]).toEqual([false, name]);
    expect(names.resolveName('gpt-4o')).toBe('mine');
  });

  it('may be a listed model although it starts with the name of the CLI', async () => {
    const names = await namesOf([agent]);
    expect(names.needsList('agent/grok')).toBe(true);
    expect(names.resolveName('agent/grok', listed)).toBe('agent/grok');
    expect(names.resolveName('agent/gpt-5', listed)).toBe('gpt-5');
    expect(names.resolveName('agent/unlisted', listed)).toBe('agent/unlisted');
    expect(names.resolveName('agent/maker/model')).toBe('maker/model');
    expect([names.needsList('maker/model'), names.resolveName('maker/model')]).toEqual([false, 'maker/model']);
    const mapped = await namesOf([cli('codex')], 'codex/gpt-5=other');
    expect([mapped.resolveName('codex/gpt-5', listed), mapped.resolveName('codex/sonnet', listed)]).toEqual([
      'other',
      'sonnet',
    ]);
  });
});

describe('A model name with several CLIs', () => {
  it.each<[string, string]>([
    ['echo', 'echo'],
    ['demo/echo', 'demo/echo'],
    ['claude', 'claude'],
    ['claude/opus', 'claude/opus'],
    ['claude/claude-next', 'claude/claude-next'],
    ['gpt-4o', 'claude/haiku'],
    ['claude/gpt-4o', 'demo/echo'],
    ['anything', 'default'],
    ['other/echo', 'default'],
    ['default', 'default'],
  ])('is looked up at the CLI that it names, else at the first one: %s', async (name, target) => {
    const names = await namesOf([demo, claude], 'gpt-4o=claude/haiku,claude/gpt-4o=demo/echo,*=default,claude=echo');
    expect(names.resolveName(name)).toBe(target);
  });

  it('needs the list of the named CLI if an alias could replace it', async () => {
    const names = await namesOf([demo, claude], 'claude/gpt-4o=echo,*=default');
    expect(['claude/gpt-4o', 'claude/gpt-5', 'gpt-5', 'claude/opus'].map((name) => names.needsList(name))).toEqual([
      true,
      false,
      false,
      false,
    ]);
    expect(names.resolveName('claude/gpt-4o', new Set(['gpt-4o']))).toBe('claude/gpt-4o');
  });
});

it('The names that an operator configures may be aliases, which resolve to their targets', async () => {
  const aliases = { MODEL_API_MODEL_ALIASES: 'gpt-4o=echo,*=eliza' };
  const router = await routerOf([demo], { ...aliases, MODEL_API_ALLOWED_MODELS: 'gpt-4o,demo/eliza' }, ['gpt-4o', 'x']);
  expect([router.names.choice.allowed, router.names.choice.fallback]).toEqual([['echo', 'eliza'], 'echo']);
  expect(router.modelsOf('key a')).toEqual(['echo', 'x']);
  const own = narrowed(router.names.choice, router.modelsOf('key a'));
  expect(own.allowed).toEqual(['echo']);
  expect(() => modelFor(router.names.resolveName('anything'), own)).toThrow('must be one of echo');
  const several = await routerOf([demo, claude], { MODEL_API_MODEL_ALIASES: 'mini=claude/haiku' }, ['mini', 'echo']);
  expect(several.modelsOf('key a')).toEqual(['claude/haiku', 'demo/echo']);
});

describe('The model name "default"', () => {
  it('stands for the default model of the client', async () => {
    const { choice } = (await routerOf([claude], { MODEL_API_DEFAULT_MODEL: 'haiku' })).names;
    expect([modelFor('default', choice), modelFor(null, choice)]).toEqual(['haiku', 'haiku']);
    expect(modelFor('default', narrowed(choice, ['opus']))).toBe('opus');
    const plain = await routerOf([demo]);
    expect(modelFor('default', plain.names.choice)).toBeNull();
    expect(plain.route({ model: 'default', client: 'key a' })).toMatchObject({ cli: demo, adapterModel: null });
  });

  it('is sent to the default CLI', async () => {
    const { choice } = (await routerOf([demo, claude], { MODEL_API_DEFAULT_MODEL: 'claude/haiku' })).names;
    expect(modelFor('default', choice)).toBe('claude/haiku');
    const router = await routerOf([demo, claude], {}, ['claude/opus']);
    expect(router.route({ model: 'default', client: 'key a' })).toMatchObject({ cli: claude, adapterModel: 'opus' });
  });

  it('is a real model if the operator allows one of that name', async () => {
    const { choice } = (await routerOf([claude], { MODEL_API_ALLOWED_MODELS: 'haiku,default' })).names;
    expect(modelFor('default', choice)).toBe('default');
    const all = await routerOf([claude]);
    expect(modelFor('default', narrowed(all.names.choice, ['opus', 'default']))).toBe('default');
  });
});

import type { Adapter } from '../../../../src/primary/cli/contract/adapter.js';
import { type AtLeastOne, modelFor, type NamedAdapter } from '../../../../src/primary/cli/models.js';
import { ModelNames, ModelRouter } from '../../../../src/primary/cli/route.js';
import type { ClientText } from '../../../../src/shared/client.js';
import { loadConfig } from '../../../../src/shared/config/config.js';

function cli(name: string, models: readonly string[] | null = null, needsModel = false): NamedAdapter {
  return { name, adapter: { models, needsModel } as unknown as Adapter };
}

const [claude, codex, local] = [cli('claude'), cli('codex', ['gpt-5', 'mini']), cli('local', null, true)];
const three = [claude, codex, local] as const;

async function routerOf(
  clis: AtLeastOne<NamedAdapter>,
  env: Record<string, string> = {},
  modelsOf: (client: ClientText) => readonly string[] | null = () => null,
) {
  const optionsOf = (client: ClientText) => ({ models: modelsOf(client) });
  return new ModelRouter(new ModelNames(await loadConfig(env, async () => ''), clis), clis, optionsOf);
}

describe('The public name of a model', () => {
  it('is the native one if there is only one CLI', async () => {
    const router = await routerOf([claude]);
    expect(['opus', 'claude/opus', 'codex'].map((name) => router.names.canonical(name))).toEqual([
      'opus',
      'claude/opus',
      'codex',
    ]);
    expect(router.split('claude/opus')).toEqual({ cli: claude, model: 'claude/opus' });
    expect([router.names.publicName(claude, 'opus'), router.names.publicName(claude, null)]).toEqual(['opus', null]);
  });

  it.each([
    ['claude/opus', claude, 'opus', 'claude/opus'],
    ['opus', claude, 'opus', 'claude/opus'],
    ['openai/gpt-oss', claude, 'openai/gpt-oss', 'claude/openai/gpt-oss'],
    ['codex/gpt-5', codex, 'gpt-5', 'codex/gpt-5'],
    ['codex', codex, null, 'codex'],
    ['codex/', codex, null, 'codex'],
    ['local/library/llama3', local, 'library/llama3', 'local/library/llama3'],
  ])('starts with the name of its CLI if there are several: %s', async (name, cli, model, canonical) => {
    const router = await routerOf(three);
    expect([router.split(name), router.names.canonical(name)]).toEqual([{ cli, model }, canonical]);
  });
});

describe('A request to several CLIs', () => {
  it('is sent to the first one if it names no model, or to the configured default', async () => {
    const request = { model: null, client: 'key a' as const };
    const plain = await routerOf(three);
    const first = {
      cli: claude,
      adapterModel: null,
      publicModel: 'claude',
      label: 'claude',
      circuit: '',
      account: null,
    };
    expect([modelFor(null, plain.names.choice), plain.route(request)]).toEqual(['claude', first]);
    const said = await routerOf(three, { MODEL_API_DEFAULT_MODEL: 'codex/mini' });
    const second = {
      cli: codex,
      adapterModel: 'mini',
      publicModel: 'codex/mini',
      label: 'codex/mini',
      circuit: 'mini',
      account: null,
    };
    expect([modelFor(null, said.names.choice), said.route(request)]).toEqual(['codex/mini', second]);
  });

  it('is sent to a model of its API key, and may name no other', async () => {
    const router = await routerOf(three, {}, () => ['codex/mini']);
    const route = { cli: codex, adapterModel: 'mini', publicModel: 'codex/mini' };
    expect(router.route({ model: null, client: 'key a' })).toMatchObject(route);
    expect(() => router.checkModel(null, 'key a')).not.toThrow();
    expect(() => router.checkModel('opus', 'key a')).toThrow('must be one of codex/mini (the models of its API key)');
  });

  it('has a route even if its model is not allowed', async () => {
    const router = await routerOf(three);
    const request = { model: 'codex/gpt-6', client: 'key a' as const };
    expect(router.route(request)).toMatchObject({ cli: codex, adapterModel: 'gpt-6' });
    expect(() => router.checkModel(request.model, request.client)).toThrow('must be one of codex/gpt-5, codex/mini');
  });

  it('may name a model that its CLI lists, and a CLI alone if that has a default', async () => {
    const { choice } = (await routerOf(three)).names;
    expect(['opus', 'codex/gpt-5', 'codex', 'local/x'].map((name) => modelFor(name, choice))).toEqual([
      'claude/opus',
      'codex/gpt-5',
      'codex',
      'local/x',
    ]);
    expect(() => modelFor('codex/gpt-6', choice)).toThrow('model: must be one of codex/gpt-5, codex/mini');
    expect(() => modelFor('local', choice)).toThrow('model: must name a model of local, as in local/NAME');
  });

  it('may name nothing that a CLI reads as a flag or a path', async () => {
    const { choice } = (await routerOf(three)).names;
    for (const name of ['local/-rf', 'local/--yes', 'local//etc/passwd', 'local/@file', 'claude/-p', 'claude//x']) {
      expect(() => modelFor(name, choice)).toThrow('must have a letter or a digit after');
    }
  });

  it('may name only what the operator allows, in either spelling', async () => {
    const { choice } = (await routerOf(three, { MODEL_API_ALLOWED_MODELS: 'opus,codex/mini' })).names;
    expect(['opus', 'claude/opus'].map((name) => modelFor(name, choice))).toEqual(['claude/opus', 'claude/opus']);
    expect(() => modelFor('codex/gpt-5', choice)).toThrow('must be one of claude/opus, codex/mini');
    expect(modelFor(null, choice)).toBe('claude/opus');
  });
});

describe('A request to one CLI', () => {
  const route = async (model: string | null, env = {}, models: readonly string[] | null = null) => {
    const router = await routerOf([claude], env, () => models);
    return router.route({ model, client: 'key a' });
  };

  it('runs with the default of the CLI, which has no name, or with that of the operator', async () => {
    const nameless = { cli: claude, adapterModel: null, publicModel: null, label: null, circuit: '', account: null };
    expect([await route(null), await route('default')]).toEqual([nameless, nameless]);
    const said = { adapterModel: 'opus', publicModel: 'opus', label: 'opus' };
    expect(await route(null, { MODEL_API_DEFAULT_MODEL: 'opus' })).toMatchObject({ ...said, circuit: '' });
  });

  it('has another circuit if it names the default model than if it names none', async () => {
    const env = { MODEL_API_DEFAULT_MODEL: 'opus' };
    const circuits = [await route('opus', env), await route(null, env), await route(null, env, ['haiku'])];
    expect(circuits.map(({ circuit }) => circuit)).toEqual(['opus', '', 'haiku']);
  });
});

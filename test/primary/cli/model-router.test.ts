import type { Adapter } from '../../../src/primary/cli/contract/adapter.js';
import { type AtLeastOne, ModelRouter, type ModelsOf } from '../../../src/primary/cli/model-router.js';
import { modelFor, type NamedAdapter } from '../../../src/primary/cli/models.js';
import { loadConfig } from '../../../src/shared/config/config.js';

function cli(name: string, models: readonly string[] | null = null, needsModel = false): NamedAdapter {
  return { name, adapter: { models, needsModel } as unknown as Adapter };
}

const three: AtLeastOne<NamedAdapter> = [cli('claude'), cli('codex', ['gpt-5', 'mini']), cli('local', null, true)];

async function routerOf(clis: AtLeastOne<NamedAdapter>, env: Record<string, string> = {}, modelsOf?: ModelsOf) {
  return new ModelRouter(await loadConfig(env, async () => ''), clis, modelsOf);
}

describe('The name of a model', () => {
  it('is as its CLI has it where there is but one', async () => {
    const router = await routerOf([cli('claude')]);
    expect(['opus', 'claude/opus', 'codex'].map((name) => router.canonical(name))).toEqual([
      'opus',
      'claude/opus',
      'codex',
    ]);
    expect(router.split('claude/opus')).toEqual({ index: 0, model: 'claude/opus' });
    expect([router.publicName(0, 'opus'), router.publicName(0, null)]).toEqual(['opus', null]);
  });

  it.each([
    ['claude/opus', 0, 'opus', 'claude/opus'],
    ['opus', 0, 'opus', 'claude/opus'],
    ['openai/gpt-oss', 0, 'openai/gpt-oss', 'claude/openai/gpt-oss'],
    ['codex/gpt-5', 1, 'gpt-5', 'codex/gpt-5'],
    ['codex', 1, null, 'codex'],
    ['codex/', 1, null, 'codex'],
    ['local/library/llama3', 2, 'library/llama3', 'local/library/llama3'],
  ])('has that of its CLI before it where there are several: %s', async (name, index, model, canonical) => {
    const router = await routerOf(three);
    expect([router.split(name), router.canonical(name)]).toEqual([{ index, model }, canonical]);
  });
});

describe('A request to several CLIs', () => {
  it('goes to the first one where it names no model, or to where the operator says', async () => {
    const request = { model: null, client: 'a' };
    const plain = await routerOf(three);
    expect([modelFor(null, plain.choice), plain.route(request)]).toEqual(['claude', { index: 0, model: null }]);
    const said = await routerOf(three, { MODEL_API_DEFAULT_MODEL: 'codex/mini' });
    expect([modelFor(null, said.choice), said.route(request)]).toEqual(['codex/mini', { index: 1, model: 'mini' }]);
  });

  it('goes to a model of its API key', async () => {
    const router = await routerOf(three, {}, () => ['codex/mini']);
    expect(router.route({ model: null, client: 'a' })).toEqual({ index: 1, model: 'mini' });
  });

  it('may name what its CLI knows, and a CLI alone where that has a default', async () => {
    const { choice } = await routerOf(three);
    expect(['opus', 'codex/gpt-5', 'codex', 'local/x'].map((name) => modelFor(name, choice))).toEqual([
      'claude/opus',
      'codex/gpt-5',
      'codex',
      'local/x',
    ]);
    expect(() => modelFor('codex/gpt-6', choice)).toThrow('model: must be one of codex/gpt-5, codex/mini');
    expect(() => modelFor('local', choice)).toThrow('model: must name a model of local, as in local/NAME');
  });

  it('may hold nothing that a CLI reads as a flag or a path', async () => {
    const { choice } = await routerOf(three);
    for (const name of ['local/-rf', 'local/--yes', 'local//etc/passwd', 'local/@file', 'claude/-p', 'claude//x']) {
      expect(() => modelFor(name, choice)).toThrow('must have a letter or a digit after');
    }
  });

  it('may name no more than the operator allows, in either spelling', async () => {
    const { choice } = await routerOf(three, { MODEL_API_ALLOWED_MODELS: 'opus,codex/mini' });
    expect(['opus', 'claude/opus'].map((name) => modelFor(name, choice))).toEqual(['claude/opus', 'claude/opus']);
    expect(() => modelFor('codex/gpt-5', choice)).toThrow('must be one of claude/opus, codex/mini');
    expect(modelFor(null, choice)).toBe('claude/opus');
  });
});

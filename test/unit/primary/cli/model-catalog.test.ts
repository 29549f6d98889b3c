import { documentHooks } from '../../../../src/features/documents/document-hooks.js';
import { createDoors } from '../../../../src/features/doors/primary.js';
import { type CatalogParts, ModelCatalog } from '../../../../src/primary/cli/model-catalog.js';
import type { ModelCli } from '../../../../src/primary/cli/model-cli.js';
import type { AtLeastOne, NamedAdapter } from '../../../../src/primary/cli/models.js';
import { ModelNames, ModelRouter } from '../../../../src/primary/cli/route.js';
import type { ModelEntry } from '../../../../src/shared/api/models.js';
import { type Config, loadConfig } from '../../../../src/shared/config/config.js';
import { echoCli, modelClisOf } from '../../../support/agents/model-clis.js';
import { jobRequest } from '../../../support/jobs/job-records.js';
import { clock } from '../../../support/processes/trees.js';

const partsOf = (config: Config, parts: Partial<CatalogParts> = {}): CatalogParts => ({
  config,
  clock,
  sizes: { sizesOf: () => null },
  capabilitiesOf: (extras) => ({ pdf: true, ...createDoors({ config }).modelCapabilities?.(extras) }),
  firstOf: (cli) => cli,
  ...parts,
});

async function create(
  clis: AtLeastOne<NamedAdapter>,
  env: Readonly<Record<string, string>> = {},
  parts: Partial<CatalogParts> = {},
) {
  const made = await modelClisOf(clis, env);
  const catalog = new ModelCatalog(made.clis, made.router, partsOf(made.config, parts));
  return { ...made, catalog };
}

describe('The models of several CLIs', () => {
  it('are listed with the names of their CLIs, and one default', async () => {
    const all = [echoCli('claude'), echoCli('codex')] as const;
    await using made = await create(all);
    const listed = async () => (await made.catalog.list()).models.map(({ id, default: is }) => [id, is]);
    expect(await listed()).toEqual([
      ['claude/big', true],
      ['claude/small', false],
      ['codex/big', false],
      ['codex/small', false],
    ]);
    await using other = await create(all, {
      MODEL_API_DEFAULT_MODEL: 'codex/big',
      MODEL_API_ALLOWED_MODELS: 'codex/big',
    });
    const { models } = await other.catalog.list();
    expect(models.map(({ id, default: is }) => [id, is])).toEqual([['codex/big', true]]);
  });

  it('are listed with the sizes that their CLIs have reported, also under an alias', async () => {
    const sizesOf: CatalogParts['sizes']['sizesOf'] = ({ cli, model }) =>
      cli.name === 'codex' && model === 'small' ? { maxInputTokens: 9, maxOutputTokens: null } : null;
    const made = await modelClisOf([echoCli('claude'), echoCli('codex')], {
      MODEL_API_MODEL_ALIASES: 'mini=codex/small',
    });
    const catalog = new ModelCatalog(made.clis, made.router, partsOf(made.config, { sizes: { sizesOf } }));
    const { models } = await catalog.list();
    const known = models.filter(({ max_input_tokens: size }) => size !== undefined);
    expect(known.map(({ id, max_input_tokens: size, max_tokens: output }) => [id, size, output])).toEqual([
      ['codex/small', 9, undefined],
      ['mini', 9, undefined],
    ]);
    await made[Symbol.asyncDispose]();
  });

  it('are listed with the default of the default CLI', async () => {
    await using made = await create([echoCli('claude'), echoCli('codex')], { MODEL_API_DEFAULT_MODEL: 'codex' });
    const { models } = await made.catalog.list();
    expect(models.map(({ id, default: is }) => [id, is])).toEqual([
      ['claude/big', false],
      ['claude/small', false],
      ['codex/big', true],
      ['codex/small', false],
    ]);
    await using named = await create([echoCli('claude'), echoCli('codex')], { MODEL_API_ALLOWED_MODELS: 'codex,opus' });
    const allowed = await named.catalog.list();
    expect(allowed.models.map(({ id, default: is }) => [id, is])).toEqual([
      ['claude/opus', false],
      ['codex', true],
    ]);
  });

  it('are found by their aliases once they are known', async () => {
    const aliases = 'mini=codex/small,codex/big=opus,*=codex';
    await using made = await create([echoCli('claude'), echoCli('codex')], { MODEL_API_MODEL_ALIASES: aliases });
    const { catalog } = made;
    const targets = async () => {
      const names = ['big', 'other', 'codex/big', 'codex/huge', 'mini'];
      return Promise.all(names.map((name) => catalog.resolveName(name)));
    };
    expect(catalog.resolveName('big')).toBeInstanceOf(Promise);
    const known = ['big', 'codex', 'codex/big', 'codex/huge', 'codex/small'];
    expect(await targets()).toEqual(known);
    expect(catalog.resolveName('big')).toBe('big'); // synchronous from now on
    expect(await targets()).toEqual(known);
    expect((await catalog.list()).models.map(({ id, alias_of: target }) => [id, target])).toEqual([
      ['claude/big', undefined],
      ['claude/small', undefined],
      ['codex/big', undefined],
      ['codex/small', undefined],
      ['mini', 'codex/small'],
    ]);
    expect(await catalog.findModel('other')).toBeNull(); // codex does not list its default model by name
    expect(await catalog.findModel('big')).toMatchObject({ id: 'big', alias_of: 'claude/big' });
    expect(await catalog.findModel('codex/big')).toMatchObject({ id: 'codex/big', name: 'Big' });
  });

  it('may have PDFs if their CLI takes them, or if their text can be read', async () => {
    const clis = [echoCli('claude', { document: () => '' }), echoCli('codex')] as const;
    const readers = { 'application/pdf': { isMissing: true, readText: async () => '' } };
    const { modelCapabilities: capabilitiesOf } = documentHooks(readers);
    await using made = await create(clis, {}, { capabilitiesOf });
    const { models } = await made.catalog.list();
    expect(models.map(({ id, capabilities }) => [id, capabilities?.pdf])).toEqual([
      ['claude/big', true],
      ['claude/small', true],
      ['codex/big', false],
      ['codex/small', false],
    ]);
  });

  it('are listed with their inputs beside text, once the program is known', async () => {
    await using made = await create([echoCli('claude', { image: () => '' }), echoCli('codex')]);
    const { models } = await made.catalog.list();
    const plain = {
      tools: 'emulated',
      parallel_tools: false,
      schema: false,
      sampling: false,
      images: false,
      pdf: true,
      effort: false,
      citations: false,
      thinking: false,
    };
    expect(models.map(({ id, capabilities }) => [id, capabilities])).toEqual([
      ['claude/big', { ...plain, images: true }],
      ['claude/small', plain],
      ['codex/big', plain],
      ['codex/small', plain],
    ]);
    const off = { MODEL_API_TOOLS: 'off', MODEL_API_SAMPLING: 'off' };
    await using able = await create([echoCli('claude', { tools: 'parallel', wishes: ['temperature'] })], off);
    const [{ capabilities } = {}] = (await able.catalog.list()).models;
    const none = { schema: false, sampling: false, images: false, effort: false, citations: false, thinking: false };
    expect(capabilities).toEqual({ ...none, pdf: true });
    await using absent = await create([echoCli('claude', {}, ['/nowhere'])], { MODEL_API_ALLOWED_MODELS: 'opus' });
    expect((await absent.catalog.list()).models).toEqual([{ id: 'opus', name: 'opus', default: true }]);
  });
});

describe('The list of models', () => {
  const models = [
    { id: 'big', name: 'Big', default: false },
    { id: 'small', name: 'Small', default: true, description: 'fast' },
  ];
  const alias = (id: string, target: string) => ({ id, name: id, default: false, alias_of: target });

  function stub(name: string, listed: readonly ModelEntry[] | null): ModelCli {
    const program = { listModels: async () => listed, extras: null };
    const publicName = (model: string | null) => (model === null ? name : `${name}/${model}`);
    const { listModels } = program;
    return { name, adapter: { models: null }, program, listModels, publicName } as unknown as ModelCli;
  }

  async function catalogOf(aliases: string) {
    const config = await loadConfig({ MODEL_API_MODEL_ALIASES: aliases }, async () => '');
    const clis = [stub('a', models), stub('b', null)] as const;
    return new ModelCatalog(clis, new ModelRouter(new ModelNames(config, clis), clis), partsOf(config));
  }

  it('ends with the aliases and their targets', async () => {
    const catalog = await catalogOf('gpt-4o=big,*=big,usual=default,big=small,next=b/unlisted');
    const own = models.map((model) => ({ ...model, id: `a/${model.id}` }));
    const ofSilent = { id: 'b', name: 'b', default: false };
    expect(await catalog.list()).toEqual({
      count: 6,
      models: [...own, ofSilent, alias('gpt-4o', 'a/big'), alias('usual', 'a/small'), alias('next', 'b/unlisted')],
    });
  });

  it('contains each name that a request may use, with its target', async () => {
    const catalog = await catalogOf('*=big');
    expect(await catalog.findModel('a/small')).toEqual({ ...models[1], id: 'a/small' });
    expect(await catalog.findModel('anything')).toEqual(alias('anything', 'a/big'));
    expect(await catalog.findModel('default')).toEqual(alias('default', 'a/small'));
    expect(await catalog.findModel('b/x')).toBeNull();
  });
});

describe('A request', () => {
  const catalogOf = async (listed: boolean) => {
    const config = await loadConfig({ MODEL_API_MODEL_ALIASES: 'gpt-4o=haiku' }, async () => '');
    const program = { listModels: async () => [] };
    const adapter = { models: listed ? null : ['haiku'] };
    const { listModels } = program;
    const publicName = (model: string | null) => model;
    const cli = { name: 'a', adapter, program, listModels, publicName } as unknown as ModelCli;
    return new ModelCatalog([cli], new ModelRouter(new ModelNames(config, [cli]), [cli]), partsOf(config));
  };
  const request = jobRequest({ model: 'gpt-4o' });

  it('continues with the target of its model name, immediately or once that is known', async () => {
    expect((await catalogOf(false)).resolveRequest(request)).toEqual({ ...request, model: 'haiku' });
    const later = (await catalogOf(true)).resolveRequest(request);
    expect(later).toBeInstanceOf(Promise);
    expect(await later).toEqual({ ...request, model: 'haiku' });
  });

  it('is unchanged if its name is a real model, or if it names none', async () => {
    const [named, nameless] = [jobRequest({ model: 'haiku' }), jobRequest()];
    for (const each of [named, nameless]) {
      expect((await catalogOf(false)).resolveRequest(each)).toBe(each);
      expect(await (await catalogOf(true)).resolveRequest(each)).toBe(each);
    }
  });
});

import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { features } from '../../../../../src/features.js';
import { chooseAdapters, createAdapter } from '../../../../../src/primary/cli/adapters/registry.js';
import type { PrimaryFeature } from '../../../../../src/primary/features/feature.js';
import { type Config, loadConfig } from '../../../../../src/shared/config/config.js';
import { FakeClock } from '../../../../support/basics/fake-clock.js';
import { type TemporaryFolder, temporaryFolder } from '../../../../support/basics/folder.js';
import { root } from '../../../../support/documents/sources.js';

type Variables = Readonly<Record<string, string>>;

/** PATH without programs. */
const nowhere = { PATH: '/nowhere' };

let folder: TemporaryFolder;

beforeAll(async () => {
  folder = await temporaryFolder();
  await writeFile(join(folder.path, 'claude'), '', { mode: 0o755 });
});

afterAll(() => folder[Symbol.asyncDispose]());

function configOf(env: Variables): Promise<Config> {
  return loadConfig(env, () => Promise.reject(new Error('there is no file')), undefined, features);
}

function choose(config: Config, env: Variables, list: readonly Pick<PrimaryFeature, 'clis'>[] = features) {
  return chooseAdapters(config, env, { clock: new FakeClock(), features: list });
}

/** Returns the name and the warnings of the default CLI. */
async function defaultFor(env: Variables, searchPath: string, list?: readonly Pick<PrimaryFeature, 'clis'>[]) {
  const { names, warnings } = await choose(await configOf(env), { PATH: searchPath }, list);
  return [names.clis[0].name, warnings];
}

/** Resolves with the command of a CLI of this kind. */
async function commandOf(kind: string, config: Config): Promise<readonly string[]> {
  const choice = { name: kind, kind, command: config.cliCommand };
  return (await createAdapter(choice, config, nowhere, { clock: new FakeClock(), features })).command;
}

describe('The default model CLI', () => {
  it('is claude if it is on PATH, else the demo', async () => {
    expect(await defaultFor({}, folder.path)).toEqual(['claude', []]);
    const warning = 'no claude on PATH: the demo model answers. Install claude, or set MODEL_API_CLI.';
    expect(await defaultFor({}, '/nowhere')).toEqual(['demo', [warning]]);
  });

  it('is the demo also if the configured models are those of the missing claude', async () => {
    const env = { MODEL_API_DEFAULT_MODEL: 'sonnet', MODEL_API_ALLOWED_MODELS: 'sonnet,opus' };
    const { names, warnings } = await choose(await configOf(env), nowhere);
    expect([names.clis[0].name, warnings]).toEqual(['demo', [expect.stringContaining('the demo model answers')]]);
  });

  it('is claude in any case if no feature has a stand-in, with a warning if it is not on PATH', async () => {
    expect(await defaultFor({}, folder.path, [])).toEqual(['claude', []]);
    const warning = 'no claude on PATH: install claude, or set MODEL_API_CLI.';
    expect(await defaultFor({}, '/nowhere', [])).toEqual(['claude', [warning]]);
  });

  it('is never the demo on a production host or if its program is named', async () => {
    expect(await defaultFor({ NODE_ENV: 'production' }, '/nowhere')).toEqual(['claude', []]);
    expect(await defaultFor({ MODEL_API_CLI_COMMAND: '/opt/nowhere/claude' }, '/nowhere')).toEqual(['claude', []]);
  });

  it('has a warning if its program has another name', async () => {
    const env = { MODEL_API_CLI_COMMAND: '/opt/ollama run' };
    const warning = 'ollama is run as claude: for another program, set MODEL_API_CLI=command.';
    expect(await defaultFor(env, '/nowhere')).toEqual(['claude', [warning]]);
    expect(await defaultFor(env, '/nowhere', [])).toEqual(['claude', ['ollama is run as claude.']]);
  });

  it('has no warning if it is claude, also by another command', async () => {
    for (const env of [{}, { MODEL_API_CLI_COMMAND: '/opt/claude-2.1' }]) {
      const { names, warnings } = await choose(await configOf(env), { PATH: folder.path });
      expect([names.clis[0].adapter.name, warnings]).toEqual(['claude', []]);
    }
  });
});

describe('The configured model CLI', () => {
  it('is used without a warning', async () => {
    for (const name of ['demo', 'claude', 'codex', 'command']) {
      const env = { MODEL_API_CLI: name, ...(name === 'command' && { MODEL_API_CLI_COMMAND: '/opt/ollama run' }) };
      const { names, warnings } = await choose(await configOf(env), nowhere);
      expect([names.clis[0].adapter.name, warnings]).toEqual([name, []]);
    }
  });

  it('is started by the configured command, else by its default one', async () => {
    const named = await configOf({ MODEL_API_CLI_COMMAND: '/opt/model --fast' });
    expect(await commandOf('claude', named)).toEqual(['/opt/model', '--fast']);
    expect(await commandOf('demo', named)).toEqual(['/opt/model', '--fast']);
    expect(await commandOf('command', named)).toEqual(['/opt/model']);
    const plain = await configOf({});
    expect(await commandOf('claude', plain)).toEqual(['claude']);
    expect((await commandOf('demo', plain))[0]).toBe(process.execPath);
  });
});

describe('Configured models of one CLI', () => {
  const program = { MODEL_API_CLI: 'command', MODEL_API_CLI_COMMAND: 'cat' };

  it.each<[Variables, string]>([
    [{ MODEL_API_CLI: 'demo', MODEL_API_DEFAULT_MODEL: 'gpt' }, 'DEFAULT_MODEL: gpt must be one of eliza, echo'],
  ])('are configuration faults if its program lacks them: %j', async (models, fault) => {
    const chosen = choose(await configOf(models), nowhere);
    await expect(chosen).rejects.toMatchObject({ faults: [`MODEL_API_${fault}`] });
  });

  it('are reported with the warnings about the choice of the program', async () => {
    const env = { MODEL_API_CLI_COMMAND: '/opt/ollama run', MODEL_API_MODEL_ALIASES: 'a=b,b=c' };
    const warnings = [expect.stringContaining('ollama is run as claude')];
    await expect(choose(await configOf(env), nowhere)).rejects.toMatchObject({ warnings });
  });

  it.each<Variables>([
    { MODEL_API_CLI: 'demo', MODEL_API_DEFAULT_MODEL: 'demo/echo', MODEL_API_ALLOWED_MODELS: 'demo/echo' },
    { MODEL_API_CLI: 'demo', MODEL_API_DEFAULT_MODEL: 'small', MODEL_API_MODEL_ALIASES: 'small=echo' },
    { MODEL_API_CLI: 'claude', MODEL_API_DEFAULT_MODEL: 'any' },
    { MODEL_API_CLI: 'demo', MODEL_API_ALLOWED_MODELS: 'gpt,echo' },
    { MODEL_API_DEFAULT_MODEL: 'sonnet' },
    { ...program, MODEL_API_DEFAULT_MODEL: 'gpt' },
  ])('are accepted if it has them, or may have them: %j', async (models) => {
    expect((await choose(await configOf(models), nowhere)).names.clis).toHaveLength(1);
  });
});

describe('Configured models of several CLIs', () => {
  const clis = { MODEL_API_CLIS: 'a=command:cat,b=command:sh -c {model}' };

  it.each<[Variables, string]>([
    [{ MODEL_API_DEFAULT_MODEL: 'a/x' }, 'MODEL_API_DEFAULT_MODEL: a/x must be one of a/cat'],
    [{ MODEL_API_DEFAULT_MODEL: 'x' }, 'MODEL_API_DEFAULT_MODEL: a/x must be one of a/cat'],
    [{ MODEL_API_DEFAULT_MODEL: 'b' }, 'MODEL_API_DEFAULT_MODEL: b must name a model of b, as in b/NAME'],
    [{ MODEL_API_ALLOWED_MODELS: 'b,a' }, 'MODEL_API_ALLOWED_MODELS: b must name a model of b, as in b/NAME'],
  ])('are configuration faults if no request could use them: %j', async (models, fault) => {
    const chosen = choose(await configOf({ ...clis, ...models }), nowhere);
    await expect(chosen).rejects.toMatchObject({ faults: [fault] });
  });

  it.each<Variables>([{}, { MODEL_API_DEFAULT_MODEL: 'b/x' }, { MODEL_API_ALLOWED_MODELS: 'b/x,a,a/cat' }])(
    'are accepted otherwise: %j',
    async (models) => {
      const chosen = await choose(await configOf({ ...clis, ...models }), nowhere);
      expect(chosen.names.clis.map(({ name }) => name)).toEqual(['a', 'b']);
    },
  );
});

describe('Aliases', () => {
  const two = { MODEL_API_CLIS: 'main=demo,local=command:llm -m {model}' };
  const faultsOf = async (aliases: string, env: Variables) => {
    const config = await configOf({ MODEL_API_MODEL_ALIASES: aliases, ...env });
    const thrown = await choose(config, nowhere).catch((error: { faults: readonly string[] }) => error);
    return 'faults' in thrown ? thrown.faults : [];
  };
  const demo = { MODEL_API_CLI: 'demo' };
  const claude = { MODEL_API_CLI: 'claude' };

  it.each<[string, Variables, string]>([
    ['a=gpt', demo, 'gpt, which a stands for, must be one of eliza, echo'],
    ['*=gpt', demo, 'gpt, which * stands for, must be one of eliza, echo'],
    ['a=b,b=echo', demo, 'b, which a stands for, is an alias, too: use its model instead'],
    ['*=a,a=echo', demo, 'a, which * stands for, is an alias, too: use its model instead'],
    ['a=a', claude, 'a, which a stands for, is an alias, too: use its model instead'],
    ['a=opus', { ...claude, MODEL_API_ALLOWED_MODELS: 'haiku' }, 'opus, which a stands for, must be one of haiku'],
    ['a=x', { MODEL_API_CLI: 'command', MODEL_API_CLI_COMMAND: 'llm' }, 'x, which a stands for, must be one of llm'],
    ['a=main/gpt', two, 'main/gpt, which a stands for, must be one of main/eliza, main/echo'],
    ['a=local', two, 'local, which a stands for, must name a model of local'],
  ])('are faults if no request can use them: %s %j', async (aliases, env, said) => {
    expect(await faultsOf(aliases, env)).toEqual([expect.stringContaining(`MODEL_API_MODEL_ALIASES: ${said}`)]);
  });

  it('are reported with all their faults at once: a circle, and each wrong one', async () => {
    expect(await faultsOf('a=b,b=a,c=gpt', demo)).toHaveLength(3);
  });

  it.each<[string, Variables]>([
    ['a=echo,b=demo/echo,c=demo,*=default', demo],
    ['a=anything,b=claude/opus,*=default', claude],
    ['a=haiku', { ...claude, MODEL_API_ALLOWED_MODELS: 'a' }],
    ['a=echo,b=main/echo,c=main,d=local/llama,*=default', two],
  ])('are accepted for models that a CLI has, or may have: %s %j', async (aliases, env) => {
    expect(await faultsOf(aliases, env)).toEqual([]);
  });

  it('with the name of a model are never used, which causes a warning', async () => {
    const warningsFor = async (aliases: string, env: Variables) =>
      (await choose(await configOf({ MODEL_API_MODEL_ALIASES: aliases, ...env }), nowhere)).warnings;
    const idle = (name: string) => `MODEL_API_MODEL_ALIASES: ${name} is the name of a model, so it cannot be an alias`;
    expect(await warningsFor('echo=eliza,a=echo', demo)).toEqual([idle('echo')]);
    expect(await warningsFor('opus=haiku,claude-3=opus,gpt-4=opus', claude)).toEqual([idle('opus'), idle('claude-3')]);
    expect(await warningsFor('local=echo,main/echo=eliza', two)).toEqual([idle('local'), idle('main/echo')]);
  });
});

describe('The adapters that are not configured', () => {
  /**
   * Program that loads the whole primary, then selects one CLI after the other. Prints which adapters each step has
   * loaded.
   */
  const program = `
    const [primary, ...kinds] = process.argv.slice(1);
    const loaded = () => Object.keys(require.cache).flatMap((path) =>
      /src[/](?:primary[/]cli[/]adapters|features)[/](claude|codex|command|demo|acp|file)[/](?!(?:feature|shared|models)[.]js)/.exec(path)?.slice(1) ?? []);
    const known = new Set();
    const added = () => {
      const names = [...new Set(loaded())].filter((name) => !known.has(name));
      for (const name of names) known.add(name);
      return names;
    };
    require(primary + '/main.js');
    const { chooseAdapters } = require(primary + '/cli/adapters/registry.js');
    const { loadConfig } = require(primary + '/../shared/config/config.js');
    const { features } = require(primary + '/../features.js');
    const { systemClock: clock } = require(primary + '/../shared/clock.js');
    (async () => {
      const steps = [added()];
      for (const kind of kinds) {
        const env = { MODEL_API_CLI: kind, MODEL_API_CLI_COMMAND: '/bin/cat' };
        const config = await loadConfig(env, async () => '', undefined, features);
        await chooseAdapters(config, env, { clock, features });
        steps.push(added());
      }
      console.log(JSON.stringify(steps));
    })();
  `;

  it('are not loaded by the primary', async () => {
    const kinds = ['demo', 'command', 'claude', 'codex', 'gemini'];
    const primary = join(root, 'dist', 'src', 'primary');
    const { stdout } = await promisify(execFile)(process.execPath, ['-e', program, primary, ...kinds]);
    expect(JSON.parse(stdout)).toEqual([[], ['demo'], ['command'], ['claude'], ['codex'], ['acp']]);
  });
});

import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import {
  type AdapterKind,
  type CliChoice,
  chooseAdapters,
  chooseKind,
  createAdapter,
} from '../../../../../src/primary/cli/adapters/registry.js';
import { type Config, loadConfig } from '../../../../../src/shared/config/config.js';
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
  return loadConfig(env, () => Promise.reject(new Error('there is no file')));
}

async function kindFor(env: Variables, searchPath: string): Promise<string> {
  return chooseKind(await configOf(env), searchPath);
}

function choiceOf(kind: AdapterKind, { cliCommand }: Config): CliChoice {
  return { name: kind, kind, command: cliCommand };
}

describe('The default model CLI', () => {
  it('is claude if it is on PATH, else the demo', async () => {
    expect(await kindFor({}, folder.path)).toBe('claude');
    expect(await kindFor({}, '/nowhere')).toBe('demo');
  });

  it.each([
    ['on a production host', { NODE_ENV: 'production' }],
    ['where its program is named', { MODEL_API_CLI_COMMAND: '/opt/nowhere/claude' }],
  ])('is never the demo %s', async (_, env) => {
    expect(await kindFor(env, '/nowhere')).toBe('claude');
  });

  it.each([
    ['it is the demo', {}, 'no claude on PATH: the demo model answers'],
    ['it is named otherwise', { MODEL_API_CLI_COMMAND: '/opt/ollama run' }, 'ollama is run as claude'],
  ])('has a warning if %s', async (_, env, warning) => {
    const { warnings } = await chooseAdapters(await configOf(env), nowhere);
    expect(warnings).toEqual([expect.stringContaining(warning)]);
  });

  it('has no warning if it is claude, also by another command', async () => {
    for (const env of [{}, { MODEL_API_CLI_COMMAND: '/opt/claude-2.1' }]) {
      const { names, warnings } = await chooseAdapters(await configOf(env), { PATH: folder.path });
      expect([names.clis[0].adapter.name, warnings]).toEqual(['claude', []]);
    }
  });
});

describe('The configured model CLI', () => {
  it('is used without a warning', async () => {
    for (const name of ['demo', 'claude', 'codex', 'command']) {
      const env = { MODEL_API_CLI: name, ...(name === 'command' && { MODEL_API_CLI_COMMAND: '/opt/ollama run' }) };
      const { names, warnings } = await chooseAdapters(await configOf(env), nowhere);
      expect([names.clis[0].adapter.name, warnings]).toEqual([name, []]);
    }
  });

  it('is started by the configured command, else by its default one', async () => {
    const named = await configOf({ MODEL_API_CLI_COMMAND: '/opt/model --fast' });
    expect((await createAdapter(choiceOf('claude', named), named, nowhere)).command).toEqual(['/opt/model', '--fast']);
    expect((await createAdapter(choiceOf('demo', named), named, nowhere)).command).toEqual(['/opt/model', '--fast']);
    expect((await createAdapter(choiceOf('command', named), named, nowhere)).command).toEqual(['/opt/model']);
    const plain = await configOf({});
    expect((await createAdapter(choiceOf('claude', plain), plain, nowhere)).command).toEqual(['claude']);
    expect((await createAdapter(choiceOf('demo', plain), plain, nowhere)).command[0]).toBe(process.execPath);
  });

  it('offers as a plain command its one model, or any if it takes a model', async () => {
    const modelsOf = async (command: string, more: Variables = {}) => {
      const config = await configOf({ MODEL_API_CLI_COMMAND: command, ...more });
      return (await createAdapter(choiceOf('command', config), config, nowhere)).models;
    };
    expect(await modelsOf('/opt/ollama run')).toEqual(['ollama']);
    expect(await modelsOf('/opt/ollama run', { MODEL_API_DEFAULT_MODEL: 'llama' })).toEqual(['llama']);
    expect(await modelsOf('/opt/ollama run {model}')).toBeNull();
  });
});

describe('opencode', () => {
  /** Whether opencode may use its default provider, to which it would send prompts without a login. */
  async function usesItsOwn(env: Variables, home = '/nowhere'): Promise<boolean> {
    const config = await configOf({ MODEL_API_CLI: 'opencode', ...env });
    const [{ adapter }] = (await chooseAdapters(config, { HOME: home, ...env })).names.clis;
    const { disabled_providers: disabled } = JSON.parse(adapter.env.OPENCODE_CONFIG_CONTENT ?? '');
    return !disabled.includes('opencode');
  }

  it.each<Variables>([
    {},
    { MODEL_API_ALLOWED_MODELS: 'anthropic/opencode,opencode,openai/opencode/x' },
    { OPENCODE_API_KEY: 'of-somebody-else' },
    { MODEL_API_CLI: 'auto', MODEL_API_CLIS: 'opencode', MODEL_API_DEFAULT_MODEL: 'opencode/anthropic/x' },
  ])('does not use its built-in models unless the operator names them: %j', async (env) => {
    expect(await usesItsOwn(env)).toBe(false);
  });

  it.each<Variables>([
    { MODEL_API_DEFAULT_MODEL: 'opencode/big-pickle' },
    { MODEL_API_ALLOWED_MODELS: 'anthropic/x,opencode/big-pickle' },
    { MODEL_API_CLI_ENV: 'OPENCODE_API_KEY', OPENCODE_API_KEY: 'key' },
    { MODEL_API_CLI: 'auto', MODEL_API_CLIS: 'opencode', MODEL_API_DEFAULT_MODEL: 'opencode/opencode/x' },
  ])('uses them if the operator names them: %j', async (env) => {
    expect(await usesItsOwn(env)).toBe(true);
  });

  it('uses them if its user has logged in there', async () => {
    await using home = await temporaryFolder();
    const path = join(home.path, '.local', 'share', 'opencode', 'auth.json');
    await mkdir(dirname(path), { recursive: true });
    for (const [text, isOwn] of [
      ['{"anthropic":{}}', false],
      ['{"opencode":{}}', true],
      ['no json', false],
      ['null', false],
    ] as const) {
      await writeFile(path, text);
      expect(await usesItsOwn({}, home.path)).toBe(isOwn);
    }
  });
});

describe('A model CLI whose adapter is in a file', () => {
  const example = async () => require(join(root, 'docs', 'examples', 'jay-adapter.cjs'));
  const single = { MODEL_API_CLI: '/etc/jay.cjs', MODEL_API_CLI_COMMAND: 'node jay-agent.cjs' };

  it('has the name that the adapter defines, and gets its command', async () => {
    const loaded: string[] = [];
    const load = (path: string) => {
      loaded.push(path);
      return example();
    };
    const { names, warnings } = await chooseAdapters(await configOf(single), nowhere, load);
    expect(names.clis).toMatchObject([{ name: 'jay', adapter: { name: 'jay', command: ['node', 'jay-agent.cjs'] } }]);
    expect([loaded, warnings]).toEqual([['/etc/jay.cjs'], []]);
  });

  it('can be one of several, under the name in the list', async () => {
    const config = await configOf({ MODEL_API_CLIS: 'demo,bird=/etc/jay.cjs:jay-agent --mood=merry' });
    const { names } = await chooseAdapters(config, nowhere, example);
    expect(names.clis).toMatchObject([
      { name: 'demo' },
      { name: 'bird', adapter: { command: ['jay-agent', '--mood=merry'] } },
    ]);
  });

  it('is a configuration fault if the file contains no valid adapter', async () => {
    const config = await configOf(single);
    const faults = ['MODEL_API_CLI: /etc/jay.cjs: must export a function createAdapter'];
    await expect(chooseAdapters(config, nowhere, async () => ({}))).rejects.toMatchObject({ faults });
    const refused = chooseAdapters(config, nowhere, () => Promise.reject(new Error('is not a file')));
    await expect(refused).rejects.toMatchObject({ faults: ['MODEL_API_CLI: /etc/jay.cjs: is not a file'] });
  });

  it('needs a configured model if it has no default', async () => {
    const needy = async () => {
      const { createAdapter: made } = await example();
      return { createAdapter: (given: object) => ({ ...made(given), needsModel: true }) };
    };
    const faults = ['MODEL_API_DEFAULT_MODEL: must be set, because jay has no default model'];
    await expect(chooseAdapters(await configOf(single), nowhere, needy)).rejects.toMatchObject({ faults });
    for (const named of [{ MODEL_API_DEFAULT_MODEL: 'jay-small' }, { MODEL_API_ALLOWED_MODELS: 'jay-small' }]) {
      const { names } = await chooseAdapters(await configOf({ ...single, ...named }), nowhere, needy);
      expect(names.clis).toMatchObject([{ name: 'jay', adapter: { needsModel: true } }]);
    }
  });

  it('is named by the variable for its name', async () => {
    const config = await configOf({ MODEL_API_CLIS: 'demo,bird=/etc/jay.cjs' });
    const faults = ['MODEL_API_CLIS: /etc/jay.cjs: must export a function createAdapter'];
    await expect(chooseAdapters(config, nowhere, async () => ({}))).rejects.toMatchObject({ faults });
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
    const chosen = chooseAdapters(await configOf({ ...clis, ...models }), nowhere);
    await expect(chosen).rejects.toMatchObject({ faults: [fault] });
  });

  it.each<Variables>([{}, { MODEL_API_DEFAULT_MODEL: 'b/x' }, { MODEL_API_ALLOWED_MODELS: 'b/x,a,a/cat' }])(
    'are accepted otherwise: %j',
    async (models) => {
      const chosen = await chooseAdapters(await configOf({ ...clis, ...models }), nowhere);
      expect(chosen.names.clis.map(({ name }) => name)).toEqual(['a', 'b']);
    },
  );
});

describe('Aliases', () => {
  const two = { MODEL_API_CLIS: 'main=demo,local=command:llm -m {model}' };
  const faultsOf = async (aliases: string, env: Variables) => {
    const config = await configOf({ MODEL_API_MODEL_ALIASES: aliases, ...env });
    const thrown = await chooseAdapters(config, nowhere).catch((error: { faults: readonly string[] }) => error);
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
      (await chooseAdapters(await configOf({ MODEL_API_MODEL_ALIASES: aliases, ...env }), nowhere)).warnings;
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
      /[/]adapters[/](?!common[/])(\\w+)[/]/.exec(path)?.slice(1) ?? []);
    const known = new Set();
    const added = () => {
      const names = [...new Set(loaded())].filter((name) => !known.has(name));
      for (const name of names) known.add(name);
      return names;
    };
    require(primary + '/main.js');
    const { chooseAdapters } = require(primary + '/cli/adapters/registry.js');
    const { loadConfig } = require(primary + '/../shared/config/config.js');
    (async () => {
      const steps = [added()];
      for (const kind of kinds) {
        const env = { MODEL_API_CLI: kind, MODEL_API_CLI_COMMAND: '/bin/cat' };
        await chooseAdapters(await loadConfig(env, async () => ''), env, async () => ({}));
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

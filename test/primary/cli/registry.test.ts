import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { chooseAdapter, chooseKind, createAdapter } from '../../../src/primary/cli/registry.js';
import { type Config, loadConfig } from '../../../src/shared/config/config.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/folder.js';

type Variables = Readonly<Record<string, string>>;

/** Nothing is on this PATH. */
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

describe('the model CLI that is chosen by itself', () => {
  it('is claude where it is on PATH, else the demo', async () => {
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
    ['it is named otherwise', { MODEL_API_CLI_COMMAND: '/opt/ollama run' }, 'ollama is taken for claude'],
  ])('comes with a warning where %s', async (_, env, warning) => {
    const { warnings } = await chooseAdapter(await configOf(env), nowhere);
    expect(warnings).toEqual([expect.stringContaining(warning)]);
  });

  it('needs no warning where it is claude, under a name of its own too', async () => {
    for (const env of [{}, { MODEL_API_CLI_COMMAND: '/opt/claude-2.1' }]) {
      const { adapter, warnings } = await chooseAdapter(await configOf(env), { PATH: folder.path });
      expect([adapter.name, warnings]).toEqual(['claude', []]);
    }
  });
});

describe('the model CLI that the operator has chosen', () => {
  it('is that, without a warning', async () => {
    for (const [env, name] of [
      [{ MODEL_API_CLI: 'demo' }, 'demo'],
      [{ MODEL_API_CLI: 'claude' }, 'claude'],
      [{ MODEL_API_CLI: 'command', MODEL_API_CLI_COMMAND: '/opt/ollama run' }, 'command'],
    ] as const) {
      const { adapter, warnings } = await chooseAdapter(await configOf(env), nowhere);
      expect([adapter.name, warnings]).toEqual([name, []]);
    }
  });

  it('is started by the command that is named, else by its own', async () => {
    const named = await configOf({ MODEL_API_CLI_COMMAND: '/opt/model --fast' });
    expect(createAdapter('claude', named, nowhere).command).toEqual(['/opt/model', '--fast']);
    expect(createAdapter('demo', named, nowhere).command).toEqual(['/opt/model', '--fast']);
    expect(createAdapter('command', named, nowhere).command).toEqual(['/opt/model']);
    const plain = await configOf({});
    expect(createAdapter('claude', plain, nowhere).command).toEqual(['claude']);
    expect(createAdapter('demo', plain, nowhere).command[0]).toBe(process.execPath);
  });

  it('offers as a plain command the model that it is, or any where it takes a model', async () => {
    const modelsOf = async (command: string, more: Variables = {}) =>
      createAdapter('command', await configOf({ MODEL_API_CLI_COMMAND: command, ...more }), nowhere).models;
    expect(await modelsOf('/opt/ollama run')).toEqual(['ollama']);
    expect(await modelsOf('/opt/ollama run', { MODEL_API_DEFAULT_MODEL: 'llama' })).toEqual(['llama']);
    expect(await modelsOf('/opt/ollama run {model}')).toBeNull();
  });
});

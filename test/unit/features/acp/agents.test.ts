import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { features } from '../../../../src/features.js';
import { chooseAdapters } from '../../../../src/primary/cli/adapters/registry.js';
import { type Config, loadConfig } from '../../../../src/shared/config/config.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { temporaryFolder } from '../../../support/basics/folder.js';

type Variables = Readonly<Record<string, string>>;

function configOf(env: Variables): Promise<Config> {
  return loadConfig(env, () => Promise.reject(new Error('there is no file')), undefined, features);
}

const sources = { clock: new FakeClock(), features };

describe('opencode', () => {
  /** Whether opencode may use its default provider, to which it would send prompts without a login. */
  async function usesItsOwn(env: Variables, home = '/nowhere'): Promise<boolean> {
    const config = await configOf({ MODEL_API_CLI: 'opencode', ...env });
    const [{ adapter }] = (await chooseAdapters(config, { HOME: home, ...env }, sources)).names.clis;
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

describe('The port for the tools of clients', () => {
  it('is one for all agents and accounts of a service, so that a removed account leaves none open', async () => {
    const config = await configOf({ MODEL_API_CLIS: 'gemini,qwen' });
    const { clis } = (await chooseAdapters(config, { HOME: '/nowhere' }, sources)).names;
    const ports = clis.map(({ adapter }) => adapter.callbacks);
    expect(ports[0]).toBeDefined();
    expect(ports[1]).toBe(ports[0]);
    const other = await chooseAdapters(config, { HOME: '/nowhere' }, { ...sources, clock: new FakeClock() });
    expect(other.names.clis[0].adapter.callbacks).not.toBe(ports[0]);
  });
});

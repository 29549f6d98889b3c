import { join } from 'node:path';
import { fileCreator } from '../../../../src/features/file/adapter-module.js';
import { file } from '../../../../src/features/file/feature.js';
import { features } from '../../../../src/features.js';
import { chooseAdapters } from '../../../../src/primary/cli/adapters/registry.js';
import type { CallbackRequest } from '../../../../src/primary/cli/contract/adapter.js';
import { type Config, loadConfig } from '../../../../src/shared/config/config.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { root } from '../../../support/documents/sources.js';

type Variables = Readonly<Record<string, string>>;

/** PATH without programs. */
const nowhere = { PATH: '/nowhere' };

function configOf(env: Variables): Promise<Config> {
  return loadConfig(env, () => Promise.reject(new Error('there is no file')), undefined, features);
}

/** Chooses the adapters, with a function that loads files. */
function chooseWith(config: Config, load: (path: string) => Promise<unknown>) {
  const clis = { ...file.clis, loadAdapters: () => fileCreator(load) };
  const list = features.map((feature) => (feature.name === file.name ? { clis } : feature));
  return chooseAdapters(config, nowhere, { clock: new FakeClock(), features: list });
}

describe('A model CLI whose adapter is in a file', () => {
  const example = async () => require(join(root, 'docs', 'examples', 'jay-adapter.cjs'));
  const single = { MODEL_API_CLI: '/etc/jay.cjs', MODEL_API_CLI_COMMAND: 'node jay-agent.cjs' };

  it('has the name that the adapter defines, and gets its command', async () => {
    const loaded: string[] = [];
    const load = (path: string) => {
      loaded.push(path);
      return example();
    };
    const { names, warnings } = await chooseWith(await configOf(single), load);
    expect(names.clis).toMatchObject([{ name: 'jay', adapter: { name: 'jay', command: ['node', 'jay-agent.cjs'] } }]);
    expect([loaded, warnings]).toEqual([['/etc/jay.cjs'], []]);
  });

  it('can be one of several, under the name in the list', async () => {
    const config = await configOf({ MODEL_API_CLIS: 'demo,bird=/etc/jay.cjs:jay-agent --mood=merry' });
    const { names } = await chooseWith(config, example);
    expect(names.clis).toMatchObject([
      { name: 'demo' },
      { name: 'bird', adapter: { command: ['jay-agent', '--mood=merry'] } },
    ]);
  });

  it('gets the requests that its programs send to their callback', async () => {
    const { names } = await chooseWith(await configOf(single), example);
    const { callbacks } = names.clis[0].adapter;
    const bodies: string[] = [];
    const requested = ({ body, answer }: CallbackRequest) => {
      bodies.push(body);
      answer('{"ok":true}');
    };
    const open = await callbacks?.open({ requested, abandoned: () => {} });
    const { url = '', headers } = open ?? {};
    const response = await fetch(url, { method: 'POST', body: 'hello', ...(headers && { headers }) });
    expect([await response.json(), bodies]).toEqual([{ ok: true }, ['hello']]);
    await callbacks?.closePort();
  });

  it('is a configuration fault if the file contains no valid adapter', async () => {
    const config = await configOf(single);
    const faults = ['MODEL_API_CLI: /etc/jay.cjs: must export a function createAdapter'];
    await expect(chooseWith(config, async () => ({}))).rejects.toMatchObject({ faults });
    const refused = chooseWith(config, () => Promise.reject(new Error('is not a file')));
    await expect(refused).rejects.toMatchObject({ faults: ['MODEL_API_CLI: /etc/jay.cjs: is not a file'] });
  });

  it('needs a configured model if it has no default', async () => {
    const needy = async () => {
      const { createAdapter: made } = await example();
      return { createAdapter: (given: object) => ({ ...made(given), needsModel: true }) };
    };
    const faults = ['MODEL_API_DEFAULT_MODEL: must be set, because jay has no default model'];
    await expect(chooseWith(await configOf(single), needy)).rejects.toMatchObject({ faults });
    for (const named of [{ MODEL_API_DEFAULT_MODEL: 'jay-small' }, { MODEL_API_ALLOWED_MODELS: 'jay-small' }]) {
      const { names } = await chooseWith(await configOf({ ...single, ...named }), needy);
      expect(names.clis).toMatchObject([{ name: 'jay', adapter: { needsModel: true } }]);
    }
  });

  it('is named by the variable for its name', async () => {
    const config = await configOf({ MODEL_API_CLIS: 'demo,bird=/etc/jay.cjs' });
    const faults = ['MODEL_API_CLIS: /etc/jay.cjs: must export a function createAdapter'];
    await expect(chooseWith(config, async () => ({}))).rejects.toMatchObject({ faults });
  });
});

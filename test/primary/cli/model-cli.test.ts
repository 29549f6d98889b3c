import { join } from 'node:path';
import { type Adapter, plainLaunch } from '../../../src/primary/cli/contract/adapter.js';
import { ModelClis } from '../../../src/primary/cli/model-clis.js';
import { ModelRouter } from '../../../src/primary/cli/model-router.js';
import { launchKeyOf } from '../../../src/primary/cli/process/program.js';
import { GroupContainments } from '../../../src/primary/cli/terminate/group-containment.js';
import { loadConfig } from '../../../src/shared/config/config.js';
import { temporaryFolder } from '../../support/folder.js';
import { LogBook } from '../../support/log-book.js';
import { lineVersion, noSecrets, silentObserver } from '../../support/scripted-cli.js';
import { clock, temporaryInstance } from '../../support/trees.js';

const adapter: Adapter = {
  name: 'test',
  command: ['env'],
  credentialVariable: 'MODEL_TOKEN',
  env: { MODEL_RETRIES: '4', MODEL_UPDATES: 'off' },
  models: ['a', 'b'],
  learn: async () => lineVersion(),
};

async function create(env: Readonly<Record<string, string>>) {
  const folder = await temporaryFolder();
  const instance = await temporaryInstance();
  const config = await loadConfig(env, () => Promise.reject(new Error('there is no file')));
  const containments = new GroupContainments(instance, null, clock);
  const termination = { containments, killTree: async () => {}, warnings: [], fault: null };
  const host = {
    env,
    instance,
    termination,
    runtimeDirectory: folder.path,
    workDirectory: folder.path,
    searchPath: '/usr/bin:/bin',
    clock,
  };
  const named = { name: 'test', adapter };
  const router = new ModelRouter(config, [named]);
  const clis = new ModelClis(config, { ...host, log: new LogBook() }, [named], router, () => silentObserver, noSecrets);
  const dispose = async () => {
    await clis.close();
    await instance[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  };
  return { ...clis.first, models: clis.models, folder, [Symbol.asyncDispose]: dispose };
}

describe('the model CLI as a part of the service', () => {
  it('starts programs with what its adapter sets, what the operator allows, and the credential, and nothing else', async () => {
    await using cli = await create({
      HOME: '/home/me',
      MODEL_UPDATES: 'on',
      SECRET: 'x',
      MODEL_API_CLI_ENV: 'MODEL_UPDATES',
      MODEL_CODE_OAUTH_TOKEN: 'token',
    });
    const { path } = await cli.program.find();
    const { stdout } = await cli.pool.consult(path, []);
    const [cookie, ...rest] = stdout.trim().split('\n');
    expect(cookie).toMatch(/^PROMPT_RELAY_JOB=[\d.]+:1$/);
    expect(rest.toSorted()).toEqual([
      'HOME=/home/me',
      'MODEL_RETRIES=4',
      'MODEL_TOKEN=token',
      'MODEL_UPDATES=on',
      'PATH=/usr/local/bin:/usr/bin:/bin',
      `TMPDIR=${join(cli.folder.path, '1')}`,
    ]);
  });

  it('takes the launch of a request that names nothing for the usual one', async () => {
    await using cli = await create({ MODEL_API_DEFAULT_MODEL: 'b' });
    const program = await cli.program.find();
    cli.history.refresh((launch) => launchKeyOf(program, launch), 0);
    expect(cli.history.records.map(({ launch }) => launch)).toEqual([plainLaunch('b')]);
    expect(cli.models).toEqual({ fallback: 'b', allowed: ['a', 'b'], label: 'b' });
  });
});

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { accountLogins } from '../../../../src/features/accounts/logins.js';
import type { LoginSettings } from '../../../../src/primary/cli/logins.js';
import { loadConfig } from '../../../../src/shared/config/config.js';
import { echoCli } from '../../../support/agents/model-clis.js';
import { temporaryFolder } from '../../../support/basics/folder.js';

const claude = echoCli('claude');

async function open(path: string | null) {
  const config = await loadConfig({}, async () => '');
  const settings: LoginSettings = { config, env: {}, clis: [claude], create: async () => claude.adapter };
  return accountLogins.open(
    { MODEL_API_ACCOUNTS_FILE: path, MODEL_API_ACCOUNTS_AS_ROOT: false, MODEL_API_ACCOUNTS_SHARE: false },
    settings,
  );
}

describe('The logins of the accounts file', () => {
  it('are known by name, also if their line has a fault, and their faults name the variable', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'accounts');
    await writeFile(path, `ada claude home=${folder.path}/ada\nbob claude\n`);
    const source = await open(path);
    expect(source.lineFaults).toEqual([expect.stringMatching(/^MODEL_API_ACCOUNTS_FILE: line 2: bob needs/)]);
    const faults = ['ada', 'bob', 'eve'].map((name) => source.findFault('claude', name));
    expect(faults).toEqual([null, null, 'has no account eve (MODEL_API_ACCOUNTS_FILE)']);
  });

  it('are none without a file, and need no fence', async () => {
    const values = {
      MODEL_API_ACCOUNTS_FILE: null,
      MODEL_API_ACCOUNTS_AS_ROOT: false,
      MODEL_API_ACCOUNTS_SHARE: false,
    };
    const source = await open(null);
    expect([source.lineFaults, source.warnings({}, [])]).toEqual([[], []]);
    expect(await accountLogins.createFence(values, '', {})).toBeNull();
    await expect(accountLogins.checkHost(values)).resolves.toBeUndefined();
  });
});

import { chmod, mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { accountsSource, prepareAccounts } from '../../../../src/features/accounts/account-login.js';
import {
  type CliAccounts,
  type PreparedAccounts,
  watchAccountsFile,
} from '../../../../src/features/accounts/accounts.js';
import { FileFaults } from '../../../../src/primary/access/file-faults.js';
import type { FileLogin } from '../../../../src/primary/cli/contract/adapter.js';
import type { LoginSettings } from '../../../../src/primary/cli/logins.js';
import { systemClock } from '../../../../src/shared/clock.js';
import { type Config, type Environment, loadConfig } from '../../../../src/shared/config/config.js';
import { echoCli } from '../../../support/agents/model-clis.js';
import { type TemporaryFolder, temporaryFolder } from '../../../support/basics/folder.js';
import { LogBook } from '../../../support/basics/log-book.js';

const kindless = echoCli('claude');
const claude = { name: 'claude', adapter: { ...kindless.adapter, credentialVariable: 'A_TOKEN' } };
const local = { name: 'local', adapter: { ...echoCli('local').adapter, name: 'command' } };
const homeless = { homeLogin: null, homeLoginAdvice: 'name its files in MODEL_API_CLI_HOME_FILES' };
const agent = { name: 'agent', adapter: { ...echoCli('agent').adapter, name: 'acp', ...homeless } };
const google = { name: 'google', adapter: { ...echoCli('google').adapter, homeLogin: { USES_HOME: 'true' } } };

/** Adapters that were created, with their configurations and environments. */
type Created = [name: string, config: Config, env: Environment];

async function settingsIn(folder: TemporaryFolder): Promise<LoginSettings & { readonly created: Created[] }> {
  const cliEnv = 'ANTHROPIC_API_KEY,CLAUDE_CONFIG_DIR,CODEX_HOME,CLAUDE_CODE_USE_BEDROCK,AWS_REGION,ANTHROPIC_BASE_URL';
  const config = await loadConfig({ MODEL_API_CLI_ENV: cliEnv }, async () => '');
  const created: Created[] = [];
  return {
    created,
    config,
    env: { HOME: join(folder.path, 'service'), LANG: 'C.UTF-8' },
    clis: [claude, local, agent, google],
    create: async (...asked) => {
      created.push(asked);
      return claude.adapter;
    },
  };
}

describe('The accounts of a file', () => {
  it('get their HOME or their token, and no variable that selects another login', async () => {
    await using folder = await temporaryFolder();
    const home = join(folder.path, 'ada');
    await mkdir(home, { mode: 0o700 });
    await writeFile(join(folder.path, 'token'), 'the-token\n');
    const text = `ada claude home=${home}\nspare claude token-file=${folder.path}/token\nbob command home=/nowhere\n`;
    const settings = await settingsIn(folder);
    const { accounts, faults } = await prepareAccounts(text, settings);
    expect(faults).toEqual([]);
    expect(settings.created.map(([name, { cliEnv, oauthToken }, env]) => [name, cliEnv, oauthToken, env])).toEqual([
      ['claude', ['ANTHROPIC_BASE_URL'], null, { HOME: home, LANG: 'C.UTF-8' }],
      ['claude', ['ANTHROPIC_BASE_URL'], 'the-token', { LANG: 'C.UTF-8' }],
      ['local', ['ANTHROPIC_BASE_URL'], null, { HOME: '/nowhere', LANG: 'C.UTF-8' }],
    ]);
    const homes = accounts.map(({ adapter }) => adapter.home?.variables);
    expect(homes).toEqual([undefined, { HOME: '.' }, undefined]);
    expect(await Promise.all(accounts.map(({ findFault }) => findFault()))).toEqual([
      null,
      null,
      'the HOME of the account bob does not exist (prompt-relay accounts login bob)',
    ]);
    await chmod(home, 0o750);
    expect(await accounts[0]?.findFault()).toBe('other users can enter the HOME of the account ada: chmod 700 it');
    await rename(home, `${home}-elsewhere`);
    await symlink(`${home}-elsewhere`, home);
    expect(await accounts[0]?.findFault()).toBe('the HOME of the account ada is not a folder');
  });

  it('get the variables with which their CLI uses the login in its HOME', async () => {
    await using folder = await temporaryFolder();
    const settings = await settingsIn(folder);
    const { accounts } = await prepareAccounts(`ada google home=${folder.path}/ada\n`, settings);
    expect(accounts.map(({ env, cliEnv }) => [env.USES_HOME, cliEnv])).toEqual([
      ['true', ['ANTHROPIC_BASE_URL', 'USES_HOME']],
    ]);
  });

  it('stay in their HOME if a link to it changes', async () => {
    await using folder = await temporaryFolder();
    const path = (name: string) => join(folder.path, name);
    for (const name of ['one', 'two']) await mkdir(path(name));
    await symlink(path('one'), path('ada'));
    const settings = await settingsIn(folder);
    const text = `ada claude home=${path('ada')}\n`;
    const home = async () => (await prepareAccounts(text, settings)).accounts[0]?.env.HOME;
    expect(await home()).toBe(path('one'));
    await rm(path('ada'));
    await symlink(path('two'), path('ada'));
    expect(await home()).toBe(path('two'));
  });

  it('have no login twice, also through links in their HOMEs', async () => {
    await using folder = await temporaryFolder();
    const path = (name: string) => join(folder.path, name);
    for (const name of ['ada', 'bob', 'homes']) await mkdir(path(name));
    await mkdir(path('ada/shared'));
    await symlink(path('ada/shared'), path('bob/shared'));
    await symlink(path('homes'), path('link'));
    const settings = await settingsIn(folder);
    const login = (home: string) => ({ path: join(home, 'shared', 'login') }) as FileLogin;
    const create: LoginSettings['create'] = async (_, __, { HOME = '' }) => ({
      ...claude.adapter,
      login: login(HOME),
    });
    const faultsOf = async (...homes: string[]) => {
      const lines = homes.map((home, index) => `a${index} claude home=${path(home)}\n`);
      return (await prepareAccounts(lines.join(''), { ...settings, create })).faults;
    };
    expect(await faultsOf('ada', 'bob')).toEqual([
      `line 2: a1 has the login of a0: both use ${path('ada/shared/login')}`,
    ]);
    expect(await faultsOf('homes/new', 'link/new')).toEqual(['line 2: a1 has the login of a0']);
    expect(await faultsOf('homes', 'link/new')).toEqual(['line 2: a1 has the login of a0']);
    expect(await faultsOf('homes/new', 'link/other')).toEqual([]);
  });

  it('are reported with the numbers of their lines if they cannot be used', async () => {
    await using folder = await temporaryFolder();
    await writeFile(join(folder.path, 'bad'), 'two words');
    await writeFile(join(folder.path, 'large'), 'x'.repeat(300 * 1024));
    await mkdir(join(folder.path, 'a'));
    await symlink(join(folder.path, 'a'), join(folder.path, 'link'));
    const lines = [
      'a gpt home=/a',
      `b claude token-file=${folder.path}/missing`,
      `c claude token-file=${folder.path}/bad`,
      `d local token-file=${folder.path}/other`,
      `e claude home=${folder.path}/service`,
      `f claude home=${folder.path}/a`,
      `g claude home=${folder.path}/link`,
      `h agent home=${folder.path}/agent`,
      `i claude token-file=${folder.path}/large`,
      `j claude token-file=${folder.path}`,
    ];
    const { faults } = await prepareAccounts(`${lines.join('\n')}\n`, await settingsIn(folder));
    const text = faults.join('\n');
    for (const fault of [
      'line 1: the model CLI gpt of a is not one of this service: claude, local, agent, google',
      'line 2: the option token-file: ',
      `line 3: the option token-file: ${folder.path}/bad must contain only one token`,
      'line 4: local takes no token, so d needs home=',
      'line 5: e has the login of the service',
      'line 7: g has the login of f',
      'line 8: agent has no login in its HOME, so h cannot be an account of it: name its files in MODEL_API_CLI_HOME_FILES',
      `line 9: the option token-file: ${folder.path}/large: it is larger than 256 KB`,
      `line 10: the option token-file: ${folder.path}: it is a folder`,
    ])
      expect(text).toContain(fault);
  });

  it('keep their HOMEs closed to others if their lines have faults, except one around the HOME of the service', async () => {
    await using folder = await temporaryFolder();
    const path = (name: string) => join(folder.path, name);
    for (const name of ['a', 'b']) await mkdir(path(name));
    await symlink(path('a'), path('link'));
    const lines = [
      `a claude home=${path('link')} jobs=many`,
      `b gpt home=${path('b')}`,
      `c claude home=${path('service')}`,
      `d gpt home=${folder.path}`,
    ];
    const { closed } = await prepareAccounts(`${lines.join('\n')}\n`, await settingsIn(folder));
    expect(closed.map(({ name, homes }) => [name, homes])).toEqual([
      ['a', [path('a')]],
      ['d', []],
      ['b', [path('b')]],
      ['c', []],
    ]);
  });
});

describe('After a change of a file with the token of an account', () => {
  const faults: Readonly<Record<string, (path: string) => Promise<unknown>>> = {
    'an empty one': (path) => writeFile(path, ''),
    'a blank one': (path) => writeFile(path, ' \n'),
    'two tokens': (path) => writeFile(path, 'one two'),
    'two lines': (path) => writeFile(path, 'one\ntwo\n'),
    'a token in quotes': (path) => writeFile(path, '"one"'),
    'a token that is not ASCII': (path) => writeFile(path, 'tokén'),
    'a NUL': (path) => writeFile(path, 'one\0'),
    'bytes that are no text': (path) => writeFile(path, Buffer.from([0xff, 0xfe, 0x00])),
    'a large file': (path) => writeFile(path, 'x'.repeat(2 * 1024 * 1024)),
    'a folder': (path) => mkdir(path),
    'a loop of links': (path) => symlink(path, path),
    'none, because it was removed': async () => {},
  };

  it.each(Object.keys(faults))(
    'its account is refused alone, visibly, for %s, and gets the new token',
    async (fault) => {
      await using folder = await temporaryFolder();
      const [file, path] = [join(folder.path, 'accounts'), join(folder.path, 'token')];
      await writeFile(path, 'old-token');
      await writeFile(join(folder.path, 'other'), 'other-token');
      await writeFile(file, `spare claude token-file=${path}\nother claude token-file=${folder.path}/other\n`);
      const source = await accountsSource(file, await settingsIn(folder));
      let inUse = source.first;
      const replace = (prepared: PreparedAccounts) => {
        inUse = prepared;
      };
      const accounts = { named: [], replace };
      const [fileFaults, log] = [new FileFaults(), new LogBook()];
      const host = { clock: systemClock, log };
      const watched = watchAccountsFile(
        accounts as unknown as CliAccounts,
        source,
        { onChange: () => {}, fileFaults },
        host,
      );
      const tokens = () => inUse.accounts.map(({ line, token }) => [line.name, token]);
      for (let times = 0; times < 2; times++) await watched.look();
      expect(tokens()).toEqual([
        ['spare', 'old-token'],
        ['other', 'other-token'],
      ]);
      await rm(path);
      await faults[fault]?.(path);
      await watched.look();
      expect([tokens(), inUse.closed.map(({ name }) => name)]).toEqual([[['other', 'other-token']], ['spare']]);
      expect(fileFaults.counts.accounts).toBe(1);
      expect(JSON.stringify(log.entries)).not.toMatch(/old-token|one two|"one"/);
      await rm(path, { recursive: true, force: true });
      await writeFile(path, 'new-token\n');
      await watched.look();
      expect([tokens()[0], fileFaults.counts.accounts]).toEqual([['spare', 'new-token'], 0]);
    },
  );
});

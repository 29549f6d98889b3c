import { chmod, chown, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../../support/basics/folder.js';
import { runCommand } from '../../support/clients/command.js';
import { canBecomeOthers, strangers } from '../../support/clients/other-users.js';
import { AccountsLab } from '../../support/service/accounts-lab.js';

const untouched = async () => {};

describe('The command accounts', () => {
  it('adds accounts with their HOMEs, logs in, and removes them', async () => {
    await using folder = await temporaryFolder();
    const path = (name: string) => join(folder.path, name);
    const run = (...words: string[]) => runCommand(['accounts', ...words, '--file', path('accounts')]);
    expect(await run('add', 'team', 'claude', '--home', path('homes/team'))).toMatchObject({ code: 0, stdout: '' });
    expect(await run('add', 'ada', 'claude', '--owners', 'key:ada', '--jobs', '2', '--json')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`"home":"${path('homes/ada')}"`),
    });
    expect(await readFile(path('accounts'), 'utf8')).toBe(
      `team claude home=${path('homes/team')}\nada claude home=${path('homes/ada')} owners=key:ada jobs=2\n`,
    );
    expect((await stat(path('homes/ada'))).mode & 0o777).toBe(0o700);
    expect((await stat(path('accounts'))).mode & 0o777).toBe(0o644);
    const login = await run('login', 'ada', '--program', "sh -c 'pwd >login; echo $HOME >>login'");
    expect(login).toMatchObject({ code: 0, stderr: expect.stringContaining('accounts check') });
    expect(await readFile(path('homes/ada/login'), 'utf8')).toBe(`${path('homes/ada')}\n`.repeat(2));
    expect(await run('login', 'ada', '--program', 'false')).toMatchObject({ code: 1 });
    expect(await run('remove', 'team')).toMatchObject({ code: 0, stderr: expect.stringContaining('still in') });
    expect(await readFile(path('accounts'), 'utf8')).toBe(
      `ada claude home=${path('homes/ada')} owners=key:ada jobs=2\n`,
    );
  });

  it.each([
    [['add', 'ada'], 64, 'name the account and its model CLI'],
    [['add', 'ada', 'claude', '--owners', 'ada'], 64, 'the option owners must be'],
    [['add', 'a b', 'claude'], 64, 'the name must be'],
    [['add', 'bob', 'two words'], 64, 'the model CLI must be a name'],
    [['add', 'team', 'claude', '--home', '/elsewhere'], 78, 'another account already has the name team'],
    [['add', 'bob', 'claude', '--home', '/srv/team'], 78, 'has the login of team'],
    [['login', 'bob'], 64, 'no account named bob'],
    [['login', 'team', '--jobs', '2'], 64, '--jobs is only for add'],
    [['login', 'spare'], 78, 'the token of spare belongs in /token'],
    [['remove', 'bob'], 64, 'no account named bob'],
    [['revoke', 'bob'], 64, 'the action must be'],
    [['list', 'bob'], 64, 'unexpected argument bob'],
  ])('refuses %j', async (words, code, message) => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'accounts');
    const text = 'team claude home=/srv/team\nspare claude token-file=/token\n';
    await writeFile(file, text);
    const found = await runCommand(['accounts', ...words, '--file', file]);
    expect(found).toMatchObject({ code, stderr: expect.stringContaining(message) });
    expect(await readFile(file, 'utf8')).toBe(text);
  });

  it.each([
    ['a HOME that others can enter', 78, 'can be entered by other users', 'true', (home: string) => chmod(home, 0o755)],
    [
      'no folder',
      78,
      'home is not a folder',
      'true',
      (home: string) => rm(home, { recursive: true }).then(() => writeFile(home, '')),
    ],
    [
      'no program',
      78,
      'no-such-cli is not on the PATH: name the program with --program',
      'no-such-cli login',
      untouched,
    ],
    ['a program that fails', 1, 'the login has ended with the code 3', "sh -c 'exit 3'", untouched],
    ['a program that is ended', 1, 'the login has ended with the code SIGTERM', "sh -c 'kill -TERM $$'", untouched],
    ['a program that is interrupted', 130, 'the login was cancelled', "sh -c 'kill -INT $$'", untouched],
  ] as const)(
    'says why a login with %s fails',
    async (_, code, message, program, spoil: (home: string) => Promise<void>) => {
      await using folder = await temporaryFolder();
      const path = (name: string) => join(folder.path, name);
      await mkdir(path('home'), { mode: 0o700 });
      await writeFile(path('accounts'), `ada claude home=${path('home')}\nbroken\n`);
      await spoil(path('home'));
      const words = ['accounts', 'login', 'ada', '--file', path('accounts'), '--program', program];
      expect(await runCommand(words)).toMatchObject({ code, stderr: expect.stringContaining(message) });
      expect(await runCommand(['accounts', 'login', 'bob', '--file', path('accounts')])).toMatchObject({
        code: 64,
        stderr: expect.stringContaining('no account named bob, and has faults: line 2'),
      });
    },
  );

  (canBecomeOthers ? it : it.skip)(
    'logs in as the user to whom the HOME belongs, and gives new HOMEs to it',
    async () => {
      await using folder = await temporaryFolder();
      const path = (name: string) => join(folder.path, name);
      await chmod(folder.path, 0o711);
      await mkdir(path('homes'), { mode: 0o711 });
      await chown(path('homes'), strangers.ada, strangers.ada);
      const run = (...words: string[]) => runCommand(['accounts', ...words, '--file', path('accounts')]);
      await run('add', 'ada', 'claude', '--home', path('homes/ada'));
      expect((await stat(path('homes/ada'))).uid).toBe(strangers.ada);
      await run('login', 'ada', '--program', "sh -c 'id -u >user; id -G >>user'");
      expect(await readFile(path('homes/ada/user'), 'utf8')).toBe(`${strangers.ada}\n`.repeat(2));
      const { stderr } = await run('add', 'bob', 'claude', '--home', path('bob'));
      expect(stderr.replace(/\s+/g, ' ')).toContain(`${path('bob')} belongs to root`);
    },
  );

  it('shows the state of all accounts to an administrator, and of their own to others', async () => {
    const people = { root: 'scopes=ask+admin', ada: '', eve: '' };
    await using lab = await AccountsLab.start({ ada: 'owners=key:ada', team: '' }, people);
    await lab.ask('ada', 'hello');
    const run = (person: string, ...words: string[]) => {
      const flags = ['--url', lab.service.url, '--key', lab.headers(person)['x-api-key'] ?? ''];
      return runCommand(['accounts', ...words, ...flags]);
    };
    const all = await run('root', 'check');
    expect(all).toMatchObject({ code: 0 });
    expect(all.stdout).toMatch(/^ada +command +ready +quota unknown +key ada +used just now\n/);
    expect(all.stdout).toMatch(/\nteam +command +ready +quota unknown +for all +not used yet\n/);
    expect((await run('ada')).stdout).not.toContain('team');
    expect((await run('eve')).stdout).toBe('No account is yours.\n');
    await mkdir(join(lab.folder.path, 'gone'));
    await lab.writeText(`gone command home=${lab.folder.path}/missing\n`);
    await lab.service.log('accounts_loaded');
    expect(await run('root', 'check')).toMatchObject({ code: 1, stdout: expect.stringContaining('does not exist') });
  });
});

import {
  faultsAsWarnings,
  readEnvFile,
  settingsOfUnit,
  type UnitHost,
} from '../../../../src/command/base/unit-environment.js';
import { ConfigFault } from '../../../../src/shared/config/config.js';

describe('An EnvironmentFile', () => {
  it.each([
    ['A=b', { A: 'b' }],
    ['  A = b c  \n', { A: 'b c' }],
    ['A=\nB=', { A: '', B: '' }],
    ['# A=1\n;B=2\nC=3', { C: '3' }],
    ['A=b # no comment', { A: 'b # no comment' }],
    ['A=\'b  c\'\nB="d  e"', { A: 'b  c', B: 'd  e' }],
    ["A='it\\'", { A: 'it\\' }],
    ['A="say \\"hi\\" \\$x \\`y\\` \\\\ \\z"', { A: 'say "hi" $x `y` \\ \\z' }],
    ['A=\'one\' "two"  three  ', { A: 'onetwothree' }],
    ['A=a"b"\'c\'', { A: 'a"b"\'c\'' }],
    ['A=a\\\nb\nC=d', { A: 'ab', C: 'd' }],
    ['A="a\\\nb"', { A: 'ab' }],
    ['A="two\nlines"', { A: 'two\nlines' }],
    ["A='two\nlines", { A: 'two\nlines' }],
    ['A=x\\ \\\\\\"y ', { A: 'x \\"y' }],
    ['A=keeps\\ ', { A: 'keeps ' }],
    ['A=1\r\nB=2\r\n', { A: '1', B: '2' }],
    ['A=1\nA=2', { A: '2' }],
    ['A=$HOME $\u007bB} %h', { A: '$HOME $\u007bB} %h' }],
    ['', {}],
  ])('is parsed like systemd does: %j', (text, env) => {
    expect(readEnvFile(text)).toEqual({ env, notes: [] });
  });

  it.each(['export A=1', 'nonsense', '=1', '1A=2', 'A B=3', 'Ä=1'])('has lines that systemd ignores: %s', (line) => {
    const note = 'line 2: systemd ignores it, because it is not NAME=value';
    expect(readEnvFile(`X=1\n${line}\nY=2`)).toEqual({ env: { X: '1', Y: '2' }, notes: [note] });
  });

  it('may have a line that is ignored after a comment, before version 254', () => {
    const note = 'line 1: before version 254, systemd also ignores the next line';
    expect(readEnvFile('# a\\\nA=1')).toEqual({ env: { A: '1' }, notes: [note] });
  });
});

const shown = [
  'Environment=NODE_ENV=production "A=d e\\"f\\\\g \\$H" B=unit "T=tab\\there\\001" GONE=1 STAYS=1',
  ...['EnvironmentFiles=/etc/one (ignore_errors=no)', 'EnvironmentFiles=/etc/missing (ignore_errors=yes)'],
  ...['UnsetEnvironment=GONE STAYS=2', 'User=relay', 'Group=', 'LoadState=loaded'],
  'SupplementaryGroups=adm 44',
];
const unitText = '# /etc/x\n[Service]\nLoadCredential=old:/etc/old\nLoadCredential=\nLoadCredential=api_key:/etc/key\n';

interface Tried {
  readonly lines?: readonly string[];
  readonly text?: string;
  readonly files?: Readonly<Record<string, string>>;
}

/** A host with one systemd unit. Reading a file without a text is not permitted. */
function hostWith({ lines = shown, text = unitText, files = {} }: Tried = {}) {
  const all: Record<string, string> = { '/etc/one': 'B=file\nbad\n', '/etc/key': 'ada secret', ...files };
  const calls: (readonly string[])[] = [];
  const host: UnitHost = {
    systemctl: async (...words) => {
      calls.push(words);
      return words[0] === 'cat' ? text : `${lines.join('\n')}\n`;
    },
    read: async (path) => {
      if (all[path]) return all[path];
      const code = all[path] === '' ? 'EACCES' : 'ENOENT';
      throw Object.assign(new Error(`${code}: ${path}`), { code });
    },
    become: async (user, group, otherGroups) => {
      calls.push(['become', user, group, ...otherGroups]);
      return { HOME: '/home/relay', USER: user };
    },
  };
  return { host, calls };
}

describe('The settings of a unit', () => {
  it('are those with which systemd starts it', async () => {
    const { host, calls } = hostWith();
    const { env, keepsOwn, files, notes, lacksCredential } = await settingsOfUnit('relay', host);
    expect([keepsOwn, lacksCredential]).toEqual([false, false]);
    expect(env).toEqual({
      PATH: expect.stringContaining('/usr/bin'),
      HOME: '/home/relay',
      USER: 'relay',
      CREDENTIALS_DIRECTORY: '/run/credentials/relay.service',
      NODE_ENV: 'production',
      A: 'd e"f\\g $H',
      B: 'file',
      T: 'tab\there\u0001',
      STAYS: '1',
    });
    expect([...files]).toEqual([['/run/credentials/relay.service/api_key', 'ada secret']]);
    expect(notes).toEqual(['/etc/one: line 2: systemd ignores it, because it is not NAME=value']);
    expect(calls.map((words) => words.at(-1))).toEqual(['relay.service', 'relay.service', '44']);
    expect(calls.at(-1)).toEqual(['become', 'relay', '', 'adm', '44']);
  });

  it.each([
    ['yes', 'memory pids', 'no', null, ['memory', 'pids']],
    ['yes', '', 'yes', 'the unit has ProtectControlGroups=', []],
    ['no', '', 'no', 'the unit has no Delegate=', []],
  ])('include its cgroups: %s, %s, %s', async (delegate, names, isProtected, fault, controllers) => {
    const values = { Delegate: delegate, DelegateControllers: names, ProtectControlGroups: isProtected };
    const lines = [...shown, ...Object.entries(values).map(([name, value]) => `${name}=${value}`)];
    const { cgroups } = await settingsOfUnit('relay', hostWith({ lines }).host);
    expect(cgroups).toEqual({ fault, controllers: new Set(controllers) });
  });

  it('include no cgroups if systemd reports none', async () => {
    expect((await settingsOfUnit('relay', hostWith().host)).cgroups).toBeNull();
  });

  it('are not guessed if this user cannot read all of them', async () => {
    const { host, calls } = hostWith({ files: { '/etc/one': '', '/etc/key': '' } });
    const message = 'only root can read /etc/one and /etc/key: run "sudo prompt-relay check --unit';
    const refusal = { exitCode: 77, message: expect.stringContaining(message) };
    await expect(settingsOfUnit('relay.service', host)).rejects.toMatchObject(refusal);
    expect(calls.some(([word]) => word === 'become')).toBe(false);
  });

  it('have a fault if systemd would not start the unit', async () => {
    const { host } = hostWith({ text: `${unitText}LoadCredential=oauth_token:/etc/none\n` });
    const faults = ['LoadCredential=oauth_token: systemd does not start the unit: ENOENT: /etc/none'];
    await expect(settingsOfUnit('relay', host)).rejects.toMatchObject({ faults });
  });

  it('list the settings that only systemd can read', async () => {
    const text =
      '[Service]\nSetCredential=api_key:x\nLoadCredentialEncrypted=oauth_token:/etc/e\nLoadCredential=plain\n';
    const lines = [...shown.filter((line) => !line.startsWith('Env')), 'PassEnvironment=LANG'];
    const { notes, files, lacksCredential } = await settingsOfUnit('relay', hostWith({ text, lines }).host);
    expect([files.size, lacksCredential]).toEqual([0, true]);
    const unread = ['SetCredential=api_key', 'LoadCredentialEncrypted=oauth_token', 'LoadCredential=plain'];
    expect(notes).toEqual([
      ...unread.map((name) => `${name}: not read, because only systemd can do so`),
      'PassEnvironment=LANG: this command does not know the values',
    ]);
  });

  it('have no faults that may come from a credential that only systemd can read', async () => {
    const text = '[Service]\nSetCredential=api_key:x\n';
    const settings = await settingsOfUnit('relay', hostWith({ text }).host);
    const about = [
      'MODEL_API_HOST: set MODEL_API_KEY',
      'MODEL_API_ACCOUNTS_FILE: /run/credentials/relay.service/a: EACCES',
    ];
    expect(faultsAsWarnings(new ConfigFault(about, ['mistyped']), settings)).toEqual([...about, 'mistyped']);
    const both = new ConfigFault([...about, 'MODEL_API_PORT: must be a number'], ['mistyped']);
    const remaining = { faults: ['MODEL_API_PORT: must be a number'], warnings: [...about, 'mistyped'] };
    expect(() => faultsAsWarnings(both, settings)).toThrow(expect.objectContaining(remaining));
    const known = await settingsOfUnit('relay', hostWith().host);
    for (const each of [known, null]) expect(() => faultsAsWarnings(both, each)).toThrow(both);
  });

  it('require an existing unit', async () => {
    const { host } = hostWith({ lines: ['LoadState=not-found'] });
    const missing = { exitCode: 64, message: 'check: systemd has no unit relay@2.service' };
    await expect(settingsOfUnit('relay@2', host)).rejects.toMatchObject(missing);
  });
});

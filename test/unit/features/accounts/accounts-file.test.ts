import { readAccountsFile } from '../../../../src/features/accounts/accounts-file.js';

const plain = { home: null, tokenFile: null, owners: [], maxRunning: null, isSpare: false };

describe('The accounts file', () => {
  it('has an account in each line, between comments and blank lines', () => {
    const text = [
      '\uFEFF# shared',
      'team claude home=/var/lib/prompt-relay/accounts/team/',
      '',
      '  ada claude home="/srv/ada lovelace" owners=key:ada+user:ada jobs=2\r',
      'spare claude token-file=/etc/prompt-relay/spare.token',
      'lab codex home=/srv/lab owners=key:lab/bob@example.org+sso:bob+lab@example.org+user:bob',
      '',
    ].join('\n');
    expect(readAccountsFile(text)).toEqual({
      accounts: [
        { ...plain, name: 'team', cli: 'claude', home: '/var/lib/prompt-relay/accounts/team', line: 2 },
        {
          ...plain,
          ...{ name: 'ada', cli: 'claude', home: '/srv/ada lovelace', owners: ['key ada', 'user ada'], maxRunning: 2 },
          line: 4,
        },
        { ...plain, name: 'spare', cli: 'claude', tokenFile: '/etc/prompt-relay/spare.token', line: 5 },
        {
          ...{ ...plain, name: 'lab', cli: 'codex', home: '/srv/lab', line: 6 },
          owners: ['key lab/bob@example.org', 'sso bob+lab@example.org', 'user bob'],
        },
      ],
      closed: [],
      isCutOff: false,
      faults: [],
    });
  });

  it('may be empty', () => {
    expect(readAccountsFile('\n# nobody yet\n')).toEqual({ accounts: [], closed: [], isCutOff: false, faults: [] });
  });

  it.each([
    ['-team claude home=/a', 'the name must be 1 to 32 letters, digits and . _ -'],
    ['te@m claude home=/a', 'the name must be 1 to 32 letters, digits and . _ -'],
    ['team', 'team needs its model CLI, as in: team claude'],
    ['team home=/a', 'team needs its model CLI, as in: team claude'],
    ['team claude', 'team needs either home= or token-file='],
    ['team claude owners=key:ada', 'team needs either home= or token-file='],
    ['team claude home=/a token-file=/b', 'team needs either home= or token-file='],
    ['team claude home=accounts/team', 'the option home must be an absolute path'],
    ['team claude home', 'the option home must be an absolute path'],
    ['team claude token-file=', 'the option token-file must be an absolute path'],
    ['team claude home=/a home=/b', 'the option home is given twice'],
    ['team claude home=/a job=2', 'unknown option; did you mean jobs?'],
    ['team claude home=/a toString=1', 'unknown option; the options are home, token-file, owners, jobs, spare'],
    ['team claude home=/a jobs=0', 'the option jobs must be a whole number from 1 to 1024'],
    ['team claude home=/a jobs=2.5', 'the option jobs must be a whole number from 1 to 1024'],
    ['team claude home=/a owners=', ownerFault()],
    ['team claude home=/a owners=ada', ownerFault()],
    ['team claude home=/a owners=key:ada+', ownerFault()],
    ['team claude home=/a owners=user:ada/bob', ownerFault()],
    ['team claude home=/a owners=key:ada+bob', ownerFault()],
    ['team claude home=/a owners=sso:Ada', ownerFault()],
    ['team claude home=/a owners=sso:group:lab', ownerFault()],
    ['team claude home=/a owners=address:127.0.0.1', ownerFault()],
    ['team claude home="/a', 'has an open quote or a lone backslash at character 18'],
  ])('reports the fault of the line %s with its number', (line, fault) => {
    const { accounts, closed, faults } = readAccountsFile(`# accounts\n${line}\n`);
    expect([accounts, closed.length, faults]).toEqual([[], 1, [`line 2: ${fault}`]]);
  });

  it.each([
    ['team claude home=/srv/team jobs=many', ['/srv/team']],
    ['team claude "home=/srv/team/" home=/b', ['/srv/team', '/b']],
    ['team claude home="/srv/a team', ['/srv/a team']],
    ["te@m claude home='/srv/a team'\r", ['/srv/a team']],
    ['team claude hom=/srv/team Home=/b program=/usr/bin/claude token-file=/token', ['/srv/team', '/b']],
    ['team claude home=team', []],
  ])('finds the HOMEs in a line with a fault: %s', (line, homes) => {
    expect(readAccountsFile(`${line}\n`).closed.map((closed) => closed.homes)).toEqual([homes]);
  });

  it.each([
    ['team codex home=/b', 'another account already has the name team (line 1)'],
    ['ada claude home=/srv/team/', 'ada has the login of team (line 1), or a HOME around it'],
    ['ada claude home=/srv/x/../team', 'ada has the login of team (line 1), or a HOME around it'],
    ['ada claude home=/srv/team/ada', 'ada has the login of team (line 1), or a HOME around it'],
    ['ada claude home=/srv', 'ada has the login of team (line 1), or a HOME around it'],
    ['ada claude home=/', 'ada has the login of team (line 1), or a HOME around it'],
  ])('rejects a second account with the name or the login of another: %s', (line, fault) => {
    const { accounts, faults } = readAccountsFile(`team claude home=/srv/team\n${line}\n`);
    expect([accounts.map(({ name }) => name), faults]).toEqual([['team'], [`line 2: ${fault}`]]);
  });

  it('rejects two accounts with one token, and accepts neighbouring folders', () => {
    const twice = 'a claude token-file=/t\nb claude token-file=/./t\n';
    expect(readAccountsFile(twice).faults).toEqual(['line 2: b has the login of a (line 1), or a HOME around it']);
    expect(readAccountsFile('a claude home=/srv/team\nb claude home=/srv/team2\n').faults).toEqual([]);
  });

  it('has a fault if its last line could be cut off, because its owners could be missing', () => {
    const fault = 'line 2: the line break at its end is missing, as in a half-written file';
    const text = 'team claude home=/t\nada claude home=/a owners=key:ada\n';
    for (const length of [40, 42, text.length - 1])
      expect(readAccountsFile(text.slice(0, length)).faults).toHaveLength(1);
    expect(readAccountsFile(text.slice(0, -1)).faults).toEqual([fault]);
    expect(readAccountsFile(`${text}# a comment`).faults).toEqual([]);
  });

  it('reports all faults, and has at most 100 accounts', () => {
    expect(readAccountsFile('a\nb claude\n').faults).toHaveLength(2);
    const lines = Array.from({ length: 103 }, (_, index) => `a${index} claude home=/srv/${index}`);
    const { accounts, faults } = readAccountsFile(`${lines.join('\n')}\n`);
    expect([accounts.length, faults]).toEqual([100, ['line 101: the file must have at most 100 accounts']]);
  });
});

function ownerFault(): string {
  return 'the option owners must be API keys, local users and people who sign on, joined by +, such as key:ada+user:ada+sso:ada@example.org';
}

import { isRefused, plainOptions } from '../../../../src/shared/config/api-keys.js';
import { readKeysFile, refuseCosts } from '../../../../src/shared/config/keys-file.js';
import { PersonLines } from '../../../../src/shared/config/people.js';
import { keyOptions } from '../../../support/basics/key-options.js';

const digest = 'a'.repeat(64);

describe('A line of the keys file for people', () => {
  it('is for everybody, for a group or for a person, with the options of a key', () => {
    const text =
      'sso:*\nsso:group:Lab Users:weight=2,scopes=ask\r\nsso:ada@example.org:models=ollama:llama,scopes=admin\n';
    expect(readKeysFile(text, keyOptions)).toEqual({
      keys: [],
      groupLines: [],
      personLines: [
        { ...plainOptions, name: '*' },
        { ...plainOptions, name: 'group:Lab Users', weight: 2, scopes: ['ask'] },
        { ...plainOptions, name: 'ada@example.org', models: ['ollama:llama'], scopes: ['admin'] },
      ],
      faults: [],
    });
  });

  it('does not change the meaning of a key with the name sso', () => {
    const { keys, personLines } = readKeysFile(
      `sso:sha256:${digest}\nada:sha256:${'b'.repeat(64)}\nsso:ada`,
      keyOptions,
    );
    expect([keys.map(({ name }) => name), personLines.map(({ name }) => name)]).toEqual([['sso', 'ada'], ['ada']]);
  });

  it.each([
    'sso:',
    'sso:Ada',
    'sso:ada bob',
    'sso: ada',
    'sso:аda', // a Cyrillic letter
    'sso:@ada',
    `sso:${'a'.repeat(121)}`,
    'sso:**',
    'sso:group',
    'sso:group:',
    'sso:group: students',
    'sso:group:a,b',
    'sso:group:weight=2',
    'sso:group:étudiants',
    'sso:ada:',
    'sso:ada:weight=0',
    'sso:ada:subclients',
    'sso:ada:group=lab users',
    `sso:ada:previous=${digest}/2030-01-01`,
    'sso:ada:unknown=1',
  ])('is refused with the number of the line: %s', (line) => {
    const { personLines, faults } = readKeysFile(`\n${line}`, keyOptions);
    expect([personLines.every(isRefused), faults]).toEqual([true, [expect.stringMatching(/^line 2: /)]]);
  });

  it('may exist once for each name', () => {
    const { personLines, faults } = readKeysFile('sso:ada\nsso:ada:weight=2\nsso:group:ada\nsso:*\nsso:*', keyOptions);
    expect(personLines.map(({ name }) => name)).toEqual(['ada', 'group:ada', '*']);
    expect(faults).toEqual([
      'line 2: another line already begins with sso:ada',
      'line 5: another line already begins with sso:*',
    ]);
  });

  it('may not have a budget in dollars if a model CLI reports no cost', () => {
    const content = readKeysFile('sso:*:cost=5/day\nsso:ada:tokens=5/day', keyOptions);
    const { personLines, faults } = refuseCosts(content, keyOptions);
    expect(faults).toEqual([expect.stringMatching(/^the line sso:\* has the option cost/)]);
    expect(personLines.map((line) => [line.name, isRefused(line)])).toEqual([
      ['*', true],
      ['ada', false],
    ]);
  });
});

describe('The line that applies to a person', () => {
  const lines = new PersonLines(
    ['*', 'group:students', 'group:staff', 'ada', 'group:group:ada'].map((name) => ({ name })),
  );

  it.each<[string, string[], string]>([
    ['ada', ['students', 'staff'], 'ada'],
    ['bob', ['staff', 'students'], 'group:students'],
    ['bob', ['others', 'staff'], 'group:staff'],
    ['bob', ['Staff', 'staff '], '*'],
    ['bob', [], '*'],
    ['eve', ['ada', '*'], '*'],
  ])('for %s in the groups %j is that of %s', (person, groups, name) => {
    expect(lines.find(person, groups)?.name).toBe(name);
  });

  it('is none if no line names the person, a group of it or everybody', () => {
    expect(new PersonLines([{ name: 'group:staff' }]).find('staff', ['students'])).toBeNull();
  });
});

import { keyNameOf, readRoster, signOnFaults } from '../../../../src/features/courses/roster.js';

const read = (text: string) => readRoster(Buffer.from(text));
const loginsIn = (text: string) => {
  const { people, faults } = read(text);
  return [people.map(({ login, name }) => (name === '' ? login : `${login} (${name})`)), faults];
};

describe('A roster', () => {
  it.each([
    ['logins alone', 'ada\nben\n', ['ada', 'ben']],
    ['commas without a header', 'ada,Ada Lovelace\nben,Ben', ['ada (Ada Lovelace)', 'ben (Ben)']],
    ['semicolons with a header', 'Name;Login\nAda;ada\nBen;ben', ['ada (Ada)', 'ben (Ben)']],
    ['tabs', 'login\tname\nada\tAda', ['ada (Ada)']],
    [
      'the export of a learning platform',
      '"First name","Surname","Email address"\r\n"Ada","Lovelace","ada@example.org"\r\n',
      ['ada@example.org (Ada Lovelace)'],
    ],
    [
      'German titles',
      'Nachname;Vorname;E-Mail-Adresse\nMüller;Jörg;joerg@example.org',
      ['joerg@example.org (Jörg Müller)'],
    ],
    ['a login beside an address', 'email,login\nada@example.org,ada', ['ada']],
    [
      'an address in the second column',
      'Ada Lovelace;ada@example.org\nBen;ben@example.org',
      ['ada@example.org (Ada Lovelace)', 'ben@example.org (Ben)'],
    ],
    ['a byte order mark, CRLF and empty lines', '\uFEFFlogin;name\r\n\r\n;\r\nada;Ada\r\n  \r\n', ['ada (Ada)']],
    ['the ends of lines of an old Mac', 'ada\rben', ['ada', 'ben']],
    ['the line that Excel writes', 'sep=;\r\nlogin;name\r\nada;"Ada, Countess"', ['ada (Ada, Countess)']],
    ['quotation marks', '"ada","Ada ""The"" Countess"\n "ben" , Ben', ['ada (Ada "The" Countess)', 'ben (Ben)']],
    ['capital letters and blanks', ' ADA@Example.ORG ', ['ada@example.org']],
  ])('is read with %s', (_, text, people) => {
    expect(loginsIn(text)).toEqual([people, []]);
  });

  it('takes two spellings of one login in Unicode for one person', () => {
    expect(loginsIn('m\u00fcller\nmu\u0308ller')[1]).toEqual(['line 2: müller is already in line 1']);
    expect(loginsIn('\uff41\uff44\uff41\nada')[1]).toEqual(['line 2: ada is already in line 1']);
  });

  it('reports all faults at once, each with its line', () => {
    const rows = [
      'login;name',
      'ada;Ada',
      'Ada;Again',
      ';Nobody',
      'a b;Blank',
      '=cmd();Formula',
      '"open;x',
      'x\u200by;Zero',
    ];
    const more = ['c@d@e;Two', '"a"b;After', 'one;two;three', 'a\u0000;Null', `${'x'.repeat(121)};Long`];
    const { faults } = read([...rows, ...more].join('\n'));
    expect(faults).toEqual([
      'line 3: ada is already in line 2',
      'line 4: has no login',
      'line 5: the login a b contains a blank',
      "line 6: the login =cmd() must begin with a letter or a digit, and have only these and . _ @ + ' -",
      'line 7: a quotation mark is not closed in its line',
      'line 8: has an invisible character',
      'line 9: the login c@d@e has two @',
      'line 10: there is text after a closing quotation mark',
      'line 11: has 3 cells, and the header has 2',
      'line 12: has an invisible character',
      'line 13: the login has more than 120 characters',
    ]);
  });

  it.each([
    ['empty', '', 'the roster names nobody'],
    ['a header alone', 'login,name\n', 'the roster names nobody'],
    [
      'a header without logins',
      'Name;Vorname\nLovelace;Ada',
      'line 1: the header names no column with the logins or e-mail addresses: call it login or email',
    ],
  ])('is refused: %s', (_, text, fault) => {
    expect(read(text)).toEqual({ people: [], faults: [fault] });
  });

  it('is refused in another encoding than UTF-8', () => {
    expect(readRoster(Buffer.from('\uFEFFada', 'utf16le')).faults).toEqual([
      'the roster is in UTF-16: save it as CSV in UTF-8',
    ]);
    expect(readRoster(Buffer.from('ada\nm\u00fcller', 'latin1')).faults).toEqual([
      'line 2: is not in UTF-8: save the roster as CSV in UTF-8',
    ]);
  });

  it('has up to 10,000 people, and is read soon', () => {
    const lines = (count: number) =>
      Array.from({ length: count }, (_, index) => `user${index},"User ${index}"`).join('\n');
    const startedAt = performance.now();
    expect(read(lines(10_000)).people).toHaveLength(10_000);
    expect(performance.now() - startedAt).toBeLessThan(3000);
    const faulty = Array.from({ length: 10_000 }, (_, index) => ['Müller;x', 'a b;x', ';x', '"open;x'][index % 4]);
    const { people, faults } = read(`login;name\r\n${faulty.join('\r\n')}`);
    expect([people.length, faults.length, faults.at(-1)]).toEqual([
      1,
      9999,
      'line 10001: a quotation mark is not closed in its line',
    ]);
    expect(performance.now() - startedAt).toBeLessThan(6000);
    expect(read(lines(10_001)).faults).toEqual(['the roster has more than 10,000 people: make several courses']);
    expect(readRoster(Buffer.alloc(5_000_000, 'a')).faults).toEqual(['the roster is larger than 4 MB']);
  });

  it.each(['"'.repeat(200_000), `${' '.repeat(200_000)}"`, ','.repeat(200_000), ';'.repeat(200_000)])(
    'is read soon whatever one long line contains: %#',
    (text) => {
      const startedAt = performance.now();
      read(text);
      expect(performance.now() - startedAt).toBeLessThan(1000);
    },
  );
});

describe('The name of a key of a course', () => {
  it('is the course and a login that may be part of a name', () => {
    expect(keyNameOf('bio101', 'ada.l')).toBe('bio101-ada.l');
  });

  it('is derived from other logins, and differs for each', () => {
    const logins = [
      'ada@a.org',
      'ada@b.org',
      'm\u00fcller',
      'muller',
      'mueller',
      '\u0416\u0436',
      "o'brien",
      'x'.repeat(100),
    ];
    const names = logins.map((login) => keyNameOf('bio101', login));
    expect(names[0]).toMatch(/^bio101-ada-[0-9a-f]{10}$/);
    expect(names[2]).toMatch(/^bio101-mueller-[0-9a-f]{10}$/);
    expect(new Set(names).size).toBe(logins.length);
    for (const name of names) expect(name).toMatch(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/);
  });

  it('cannot be taken by a login that looks like a derived one', () => {
    const derived = keyNameOf('bio101', 'ada@a.org').replace('bio101-', '');
    expect(keyNameOf('bio101', derived)).not.toBe(`bio101-${derived}`);
  });
});

describe('People whom a proxy signs on', () => {
  it('need a login that a proxy can send', () => {
    const { people } = read('ada@example.org\nm\u00fcller');
    expect(signOnFaults(people)).toEqual([
      'line 2: a proxy cannot sign on müller: names of people have small letters, digits and . _ @ + -',
    ]);
  });
});

import { digestOf, isRefused } from '../../../../src/shared/config/api-keys.js';
import { readKeysFile, refuseCosts } from '../../../../src/shared/config/keys-file.js';
import { keyOptions } from '../../../support/basics/key-options.js';

const digest = 'ab'.repeat(32);
const plain = {
  name: 'ada',
  digest,
  scopes: ['ask', 'chat'],
  rate: null,
  maxConcurrent: null,
  maxQueued: null,
  weight: null,
  models: null,
  group: null,
  hasSubclients: false,
  expiresAt: null,
  previous: null,
  featureOptions: {},
};

function optionsOf(options: string) {
  const { keys, faults } = readKeysFile(`ada:sha256:${digest}:${options}`, keyOptions);
  expect(faults).toEqual([]);
  return keys[0];
}

describe('A line of a keys file', () => {
  it('has a name and a digest, and needs nothing else', () => {
    const { keys, faults } = readKeysFile(`# people\r\n\n  \nada:sha256:${digest.toUpperCase()}\r\n`, keyOptions);
    expect({ keys, faults }).toEqual({ keys: [plain], faults: [] });
  });

  it('may have options', () => {
    const all =
      'scopes=metrics+ask,rate=60/30,concurrent=2,queue=20,weight=2,tokens=1000000/day,cost=0.5/month,models=llama3.2:8b+gpt/4,accounts=team+spare,fallback=off,search=20/day,subclients,expires=2027-01-31';
    expect(optionsOf(all)).toEqual({
      ...plain,
      featureOptions: {
        search: '20/day',
        tokens: '1000000/day',
        cost: '0.5/month',
        accounts: 'team+spare',
        fallback: 'off',
      },
      scopes: ['ask', 'metrics'],
      rate: { maxRequests: 60, windowMs: 30_000 },
      maxConcurrent: 2,
      maxQueued: 20,
      weight: 2,
      models: ['llama3.2:8b', 'gpt/4'],
      hasSubclients: true,
      expiresAt: Date.UTC(2027, 0, 31),
    });
    expect(optionsOf('cost=0200/week')?.featureOptions).toEqual({ cost: '200/week' });
    expect(optionsOf('queue=0')).toEqual({ ...plain, maxQueued: 0 });
    const old = 'CD'.repeat(32);
    expect(optionsOf(`previous=${old}/2027-01-31`)).toEqual({
      ...plain,
      previous: { digest: old.toLowerCase(), expiresAt: Date.UTC(2027, 0, 31) },
    });
  });

  it.each([
    [digest, 'must begin with name:sha256:'],
    [`ada:md5:${digest}`, 'must begin with name:sha256:'],
    [`:sha256:${digest}`, 'the name must be 1 to 64 letters, digits and . _ -'],
    [`a b:sha256:${digest}`, 'the name must be'],
    [`-ada:sha256:${digest}`, 'the name must be'],
    [`${'a'.repeat(65)}:sha256:${digest}`, 'the name must be'],
    [`ada:sha256:${digest.slice(1)}`, 'after sha256: there must be 64 hexadecimal digits'],
    [`ada:sha256:${digest} `.replace(' ', 'x'), 'after sha256: there must be'],
    [`ada:sha256:${digestOf('')}`, 'this is the digest of an empty key'],
    [
      `ada:sha256:${digest}:`,
      'unknown option; the options are scopes, rate, concurrent, queue, weight, models, group, subclients, expires, previous, tokens, cost, running, share, webhooks, own_keys, admin, accounts, fallback, store, priority, search',
    ],
    [`ada:sha256:${digest}:queue=1,`, 'unknown option; the options are'],
    [`ada:sha256:${digest}: queue=1`, 'unknown option " queue"; did you mean queue?'],
    [`ada:sha256:${digest}:Queue=1`, 'unknown option "Queue"; did you mean queue?'],
    [`ada:sha256:${digest}:toString=1`, 'unknown option "toString"; the options are'],
    [`ada:sha256:${digest}:queue=1,rate=1/1,queue=2`, 'the option queue is given twice'],
    [`ada:sha256:${digest}:scopes=ask+root`, 'the option scopes must be one or more of ask, chat, admin, metrics'],
    [`ada:sha256:${digest}:scopes=`, 'the option scopes must be'],
    [`ada:sha256:${digest}:scopes`, 'the option scopes must be'],
    [`ada:sha256:${digest}:rate=60`, 'the option rate must be requests/seconds, such as 60/60'],
    [`ada:sha256:${digest}:rate=0/60`, 'the option rate must be'],
    [`ada:sha256:${digest}:rate=1/86401`, 'the option rate must be'],
    [`ada:sha256:${digest}:concurrent=0`, 'the option concurrent must be a whole number from 1 to 1024'],
    [`ada:sha256:${digest}:concurrent=1e2`, 'the option concurrent must be'],
    [`ada:sha256:${digest}:weight=0`, 'the option weight must be a whole number from 1 to 100'],
    [`ada:sha256:${digest}:queue=-1`, 'the option queue must be a whole number from 0 to 1000000'],
    ...[
      'tokens=1',
      'tokens=1/',
      'tokens=1/year',
      'tokens=1/Day',
      'tokens=0/day',
      'tokens=1/day/day',
      'tokens=0.5/day',
    ].map((option) => [
      `ada:sha256:${digest}:${option}`,
      'the option tokens must be tokens/day, tokens/week or tokens/month, such as 1000000/day',
    ]),
    ...['cost=5', 'cost=0/week', 'cost=-1/day', 'cost=1e3/month', 'cost=$5/day'].map((option) => [
      `ada:sha256:${digest}:${option}`,
      'the option cost must be US dollars/day, dollars/week or dollars/month, such as 5/day or 0.5/month',
    ]),
    [`ada:sha256:${digest}:models=a++b`, 'the option models must be names of models, joined by +'],
    [`ada:sha256:${digest}:accounts=team,spare`, 'unknown option "spare"; '],
    [`ada:sha256:${digest}:accounts=team+`, 'the option accounts must be names of accounts, joined by +'],
    [`ada:sha256:${digest}:models=--flag`, 'the option models must be'],
    [`ada:sha256:${digest}:subclients=true`, 'the option subclients takes no value'],
    [`ada:sha256:${digest}:expires=2027-02-31`, 'the option expires must be a day such as 2027-01-31'],
    [`ada:sha256:${digest}:expires=2027-1-1`, 'the option expires must be'],
    [`ada:sha256:${digest}:previous=${'cd'.repeat(32)}`, 'the option previous must be a day'],
    [`ada:sha256:${digest}:previous=cd/2027-01-31`, 'the option previous must be the 64 hexadecimal digits'],
    [`ada:sha256:${digest}:previous=${digest}/2027-01-31`, 'ada has the same key before and after its rotation'],
    [`ada:sha256:${digest}:group=`, 'the option group must be 1 to 64 letters, digits and . _ -'],
    [`ada:sha256:${digest}:group=*`, 'the option group must be'],
    [`ada:sha256:${digest}:fallback=on`, 'the option fallback must be off'],
    ...['search', 'search=off', 'search=0/day', 'search=5'].map((option) => [
      `ada:sha256:${digest}:${option}`,
      'the option search must be on, or a number of searches a day, such as 20/day',
    ]),
    [`ada:sha256:${digest}:webhooks=https://example.org`, 'the option webhooks must be an https:// or http:// URL'],
    [
      '@biology',
      'after the name and a blank there must be one or more of models=, expires=, tokens=, cost=, running=, share=, store=, each=, in=, and no other option',
    ],
    [
      '@* expires=2027-01-31',
      'after the name and a blank there must be one or more of tokens=, cost=, running=, share=, store=, and no other',
    ],
    [
      '@* each=tokens:5/day',
      'after the name and a blank there must be one or more of tokens=, cost=, running=, share=, store=, and no other',
    ],
    ['@biology expires=2027-02-31', 'the option expires must be a day such as 2027-01-31'],
    ['@biology each', 'each= must have an option of each member, such as each=tokens:200000/week: unknown option;'],
    [
      '@biology each=tokens',
      'each= must have an option of each member, such as each=tokens:200000/week: the option tok',
    ],
    [
      '@biology each=tokens:5/day each=tokens:6/day',
      'each= must have an option of each member, such as each=tokens:200000/week: the option tokens is given twice',
    ],
    [
      '@biology each=token:5/day',
      'each= must have an option of each member, such as each=tokens:200000/week: unknown option "token"; did you mean tokens?',
    ],
    ['@* in=biology', 'after the name and a blank there must be one or more of tokens='],
    ['@biology in', 'the option in must be the name of a group'],
    ['@biology in=*', 'the option in must be the name of a group'],
    ['@biology in=a in=b', 'the option in is given twice'],
    ['@biology in=biology', 'the group biology is in itself: biology in biology'],
    ['@biology running=0', 'the option running must be a whole number from 1 to 1024'],
    ['@biology share=101', 'the option share must be a whole number from 1 to 100'],
    [`ada:sha256:${digest}:running=4`, 'the option running is only for groups'],
    [`ada:sha256:${digest}:share=1`, 'the option share is only for groups'],
    ...[
      'running:1',
      'share:1',
      'scopes:ask',
      'group:art',
      'subclients',
      'expires:2027-01-31',
      'own_keys:3',
      'admin:@art',
    ].map((option) => [`@biology each=${option}`, `the option each cannot set ${option.split(':')[0]}`]),
    ['@biology rate=1/1', 'after the name and a blank there must be'],
    ['@biology tokens=5/day,subclients', 'after the name and a blank there must be'],
    ['@biology cost=200', 'the option cost must be US dollars/day'],
    ['@biology tokens=5/day,tokens=6/week', 'the option tokens is given twice'],
    ['@ tokens=5/day', 'after @ there must be * or the name of a group'],
    [
      '@a,b tokens=5/day',
      'after @ there must be * or the name of a group, in printable ASCII without blanks and commas',
    ],
    ['@é tokens=5/day', 'after @ there must be'],
  ])('is faulty: %s', (line, fault) => {
    const { keys, faults } = readKeysFile(line, keyOptions);
    expect(keys.every(isRefused)).toBe(true);
    expect(faults).toHaveLength(1);
    expect(faults[0]).toMatch(`line 1: ${fault}`);
  });
});

describe('A keys file', () => {
  const names = keyOptions.entries.map(([name]) => name).join(', ');

  it.each([
    ['concurent=2', ' "concurent"; did you mean concurrent?'],
    ['Rate=1/1', ' "Rate"; did you mean rate?'],
    ['colour=red', ` "colour"; the options are ${names}`],
    [digest, `; the options are ${names}`],
    ['pr_0m5Zb9o7nTzXy3r8wLQd1uHcVfKaJgE2', `; the options are ${names}`],
  ])('reports an unknown option, but never a possible key: %s', (option, shown) => {
    const { faults } = readKeysFile(`ada:sha256:${digest}:${option}`, keyOptions);
    expect(faults).toEqual([`line 1: unknown option${shown}`]);
  });

  it('rejects a key that is the previous key of another entry', () => {
    const other = `bob:sha256:${'cd'.repeat(32)}:previous=${digest}/2027-01-31`;
    for (const lines of [
      [`ada:sha256:${digest}`, other],
      [other, `ada:sha256:${digest}`],
    ]) {
      expect(readKeysFile(lines.join('\n'), keyOptions).faults).toEqual([
        expect.stringContaining('has the same key as'),
      ]);
    }
  });

  it('reports all of its faults with line numbers, and never shows a digest or a key', () => {
    const secret = 'pr_a-key-in-the-wrong-place';
    const { faults } = readKeysFile(
      [
        '# people',
        secret,
        `ada:sha256:${digest}`,
        `bob:sha256:${secret}`,
        `joe:sha256:${digestOf('joe')}:${secret}`,
        `ada:sha256:${digestOf('other')}`,
        `eve:sha256:${digest}`,
      ].join('\n'),
      keyOptions,
    );
    expect(faults.map((fault) => Number(/^line (\d+): /.exec(fault)?.[1]))).toEqual([2, 4, 5, 6, 7]);
    expect(faults.slice(3)).toEqual([
      'line 6: another key already has the name ada',
      'line 7: eve has the same key as ada: each name needs a different key',
    ]);
    expect(faults.join()).not.toMatch(/pr_|[0-9a-f]{32}/);
  });

  it('may have budgets of groups and of the whole service', () => {
    const lines = [
      '@/biology:lab tokens=5/day,cost=200/month',
      `ada:sha256:${digest}:group=biology`,
      '@*  cost=0.5/week\r',
    ];
    const { keys, groupLines, faults } = readKeysFile(lines.join('\n'), keyOptions);
    expect([keys[0]?.group, faults]).toEqual(['biology', []]);
    expect(groupLines).toEqual([
      { name: '/biology:lab', featureOptions: { tokens: '5/day', cost: '200/month' } },
      { name: '*', featureOptions: { cost: '0.5/week' } },
    ]);
    expect(readKeysFile('@a tokens=1/day\n@a cost=1/day', keyOptions).faults).toEqual([
      'line 2: another line already begins with @a',
    ]);
  });

  it('may have limits of each member of a group, its models and its last day', () => {
    const line =
      '@bio101 tokens=5/day each=tokens:2/week,each=rate:10/60 each=models:a:b+c models=a:b expires=2027-07-15';
    const { groupLines, faults } = readKeysFile(line, keyOptions);
    expect(faults).toEqual([]);
    const rate = { maxRequests: 10, windowMs: 60_000 };
    const each = { rate, models: ['a:b', 'c'], featureOptions: { tokens: '2/week' } };
    const expiresAt = Date.UTC(2027, 6, 15);
    expect(groupLines).toEqual([
      { name: 'bio101', models: ['a:b'], expiresAt, featureOptions: { tokens: '5/day' }, each },
    ]);
    const texts = groupLines.map((each) => keyOptions.groupTexts(each).join(' '));
    expect(readKeysFile(`@bio101 ${texts.join()}`, keyOptions)).toMatchObject({ groupLines, faults: [] });
  });

  it('closes groups that are in themselves or in too many groups, and names the lines', () => {
    const lines = ['@a in=b', '@b in=c', '@c in=a', '@d in=c', '@e tokens=5/day'];
    const deep = Array.from({ length: 6 }, (_, index) => `@g${index} in=g${index + 1}`);
    const { groupLines, faults } = readKeysFile([...lines, ...deep].join('\n'), keyOptions);
    expect(groupLines.flatMap(({ name, isClosed }) => (isClosed ? [name] : []))).toEqual([
      ...['a', 'b', 'c', 'd', 'g0', 'g1'],
    ]);
    expect(faults).toEqual([
      'line 1: the group a is in itself: a in b in c in a',
      'line 2: the group b is in itself: b in c in a in b',
      'line 3: the group c is in itself: c in a in b in c',
      'line 4: the group d is in more than 4 groups',
      'line 6: the group g0 is in more than 4 groups',
      'line 7: the group g1 is in more than 4 groups',
    ]);
  });

  it('can set each option of its members that does not say who somebody is, and for how long', () => {
    const isSet = (name: string) => {
      const { faults } = readKeysFile(`@biology each=${name}:$`, keyOptions);
      return !faults.some((fault) => fault.includes(`the option each cannot set ${name}`));
    };
    const names = keyOptions.entries.map(([name]) => name);
    const limits = ['rate', 'concurrent', 'queue', 'weight', 'models', 'tokens', 'cost'];
    const rights = ['accounts', 'fallback', 'webhooks', 'store', 'priority', 'search'];
    expect(names.filter(isSet).toSorted()).toEqual([...limits, ...rights].toSorted());
  });

  it('may have limits for one model, for all members together and for each of them', () => {
    const line =
      '@biology cost=200/month each=tokens:200000/week opus:cost=50/month running=4 expires=2027-07-15 each=a:8b:cost:5/week';
    const { groupLines, faults } = readKeysFile(line, keyOptions);
    expect(faults).toEqual([]);
    const each = { featureOptions: { tokens: '200000/week', 'a:8b:cost': '5/week' } };
    expect(groupLines).toMatchObject([
      { featureOptions: { cost: '200/month', 'opus:cost': '50/month', running: '4' }, each },
    ]);
    const text = groupLines.map((each) => `@biology ${keyOptions.groupTexts(each).join(' ')}`).join();
    expect(readKeysFile(text, keyOptions).groupLines).toEqual(groupLines);
    const key = optionsOf('claude/opus:tokens=5/day,models=a:cost');
    expect(key).toMatchObject({ models: ['a:cost'], featureOptions: { 'claude/opus:tokens': '5/day' } });
    expect(keyOptions.textsOf(plain as never)).not.toHaveProperty('claude/opus:tokens');
    const content = { ...readKeysFile('@biology each=opus:cost:5/week', keyOptions) };
    expect(refuseCosts(content, keyOptions).faults).toEqual([expect.stringContaining('the option opus:cost, but not')]);
  });

  it.each([
    ['@a opus:running=4', 'unknown option'],
    ['@a opus:cost=0/day', 'the option opus:cost must be US dollars/day'],
    ['@a opus:cost=1/day,opus:cost=2/day', 'the option opus:cost is given twice'],
    ['@a each=opus:rate:5/60', 'each= must have an option of each member'],
    ['@a $:cost=1/day', 'unknown option'],
    [
      `@a ${[1, 2, 3, 4, 5].map((n) => `m${n}:cost=1/day each=m${n}:cost:1/day`).join(' ')}`,
      'at most 8 options for one',
    ],
  ])('refuses %s', (line, fault) => {
    const { faults, groupLines } = readKeysFile(line, keyOptions);
    expect(faults).toEqual([expect.stringContaining(fault)]);
    expect(groupLines).toMatchObject([{ isClosed: true }]);
  });

  it('refuses a group with costs of members if not each model CLI reports costs', () => {
    const content = refuseCosts(readKeysFile('@lab each=cost:5/day\n@art each=tokens:5/day', keyOptions), keyOptions);
    expect(content.groupLines.map(({ isClosed = false }) => isClosed)).toEqual([true, false]);
    expect(content.faults).toEqual([
      'the line @lab has the option cost, but not each model CLI reports what a job costs',
    ]);
  });

  it('may be empty', () => {
    expect(readKeysFile('\ufeff\n# nobody\n', keyOptions)).toEqual({
      keys: [],
      groupLines: [],
      personLines: [],
      faults: [],
    });
  });

  it('must not repeat a name or a key from another source', () => {
    const others = readKeysFile(`default:sha256:${digestOf('other')}`, keyOptions).keys;
    expect(readKeysFile(`default:sha256:${digest}`, keyOptions, others).faults).toHaveLength(1);
    expect(readKeysFile(`ada:sha256:${digestOf('other')}`, keyOptions, others).faults).toHaveLength(1);
  });
});

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { features } from '../../../../src/features.js';
import { plainOptions } from '../../../../src/shared/config/api-keys.js';
import type { FeatureKeyOption } from '../../../../src/shared/config/key-option-table.js';
import { OptionTable } from '../../../../src/shared/config/key-options.js';
import { keyOptions } from '../../../support/basics/key-options.js';
import { root } from '../../../support/documents/sources.js';

const added = features.flatMap((feature) => Object.entries(feature.keyOptions));
const examples: Readonly<Record<string, string | true>> = {
  scopes: 'ask+metrics',
  rate: '60/30',
  concurrent: '2',
  queue: '0',
  weight: '3',
  models: 'a+b',
  tokens: '1000/week',
  cost: '0.5/month',
  group: 'biology',
  subclients: true,
  expires: '2027-01-31',
  own_keys: '3',
  previous: `${'ab'.repeat(32)}/2027-01-31`,
  ...Object.fromEntries(added.map(([name, { document }]) => [name, document[0].replace(/^[^=]*=/, '')])),
};
/** Option whose text is anything. */
const textOption: FeatureKeyOption = {
  read: (text) => text ?? '',
  ...{ flag: null, http: null, document: ['a=1', 'anything'] },
};
const documentRows = readFileSync(join(root, 'docs', 'clients.md'), 'utf8').match(/^\| `.*$/gm) ?? [];

function optionsWith(name: string) {
  return { ...plainOptions, ...keyOptions.readTexts({ [name]: examples[name] ?? '' }) };
}

describe.each([...keyOptions.entries])('The option %s of a key', (name, option) => {
  it('is written as it is read', () => {
    expect(optionsWith(name)).not.toEqual(plainOptions);
    expect(option.text(optionsWith(name), true)).toBe(examples[name]);
  });

  it('has a row in the documents', () => {
    const cells = documentRows.map((row) => row.split(' | ')[0]);
    expect(cells).toContainEqual(expect.stringMatching(new RegExp(`\`${name}[=\`]`)));
  });
});

describe('The options of features', () => {
  it.each(added)('have the row of their feature in the documents: %s', (_, { document: [example, meaning] }) => {
    expect(documentRows).toContain(`| \`${example}\` | ${meaning} |`);
  });

  it('stay beside each other, and leave options of the core alone', () => {
    const table = new OptionTable([{ keyOptions: { a: textOption } }, { keyOptions: { b: textOption } }]);
    const options = table.readLine('a=1,weight=2,b=3');
    expect(options).toEqual({ ...plainOptions, weight: 2, featureOptions: { a: '1', b: '3' } });
    expect(table.textsOf(options)).toEqual({ scopes: 'ask+chat', weight: '2', a: '1', b: '3' });
    expect(table.readSome(['weight=2'])).toEqual({ weight: 2 });
    expect(() => new OptionTable([]).readLine('a=1')).toThrow('unknown option "a"');
  });
});

describe('Options over HTTP', () => {
  const http = keyOptions.entries.flatMap(([name, option]) =>
    option.http === null ? [] : [{ name, http: option.http }],
  );

  it.each(http)('have the form that the description of the API names, set or not: $name', ({ name, http: option }) => {
    const views = [optionsWith(name), plainOptions].map(option.viewOf);
    expect(views[0]).not.toEqual(views[1]);
    for (const view of views) expect(option.view.safeParse(view).error).toBeUndefined();
  });

  it.each(http)('let a person make a key with the same options: $name', ({ name }) => {
    const maker = optionsWith(name);
    expect(keyOptions.exceeded(maker, maker)).toBeNull();
  });
});

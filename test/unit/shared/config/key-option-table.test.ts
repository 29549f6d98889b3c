import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { plainOptions } from '../../../../src/shared/config/api-keys.js';
import { httpOptions, type KeyOption, keyOptions } from '../../../../src/shared/config/key-option-table.js';
import { exceededOption, readOptionTexts } from '../../../../src/shared/config/key-options.js';
import { root } from '../../../support/documents/sources.js';

const examples: Readonly<Record<keyof typeof keyOptions, string | true>> = {
  scopes: 'ask+metrics',
  rate: '60/30',
  concurrent: '2',
  queue: '0',
  weight: '3',
  models: 'a+b',
  accounts: 'team+spare',
  fallback: 'off',
  search: '20/day',
  tokens: '1000/week',
  cost: '0.5/month',
  group: 'biology',
  webhooks: 'https://example.org/hooks/*',
  subclients: true,
  expires: '2027-01-31',
  own_keys: '3',
  previous: `${'ab'.repeat(32)}/2027-01-31`,
};
const table = Object.entries<KeyOption>(keyOptions);

describe.each(table)('The option %s of a key', (name, option) => {
  const example = Object.entries(examples).find(([each]) => each === name)?.[1] ?? '';
  const options = { ...plainOptions, ...readOptionTexts({ [name]: example }) };

  it('is written as it is read', () => {
    expect(options).not.toEqual(plainOptions);
    expect(option.text(options, true)).toBe(example);
  });

  it('has a row in the documents', () => {
    const rows = readFileSync(join(root, 'docs', 'clients.md'), 'utf8').match(/^\| `.*$/gm) ?? [];
    const cells = rows.map((row) => row.split(' | ')[0]);
    expect(cells).toContainEqual(expect.stringMatching(new RegExp(`\`${name}[=\`]`)));
  });
});

describe('Options over HTTP', () => {
  const optionsWith = (name: keyof typeof examples) => ({
    ...plainOptions,
    ...readOptionTexts({ [name]: examples[name] }),
  });

  it.each(httpOptions)('have the form that the description of the API names, set or not: %s', (name, option) => {
    const views = [optionsWith(name), plainOptions].map(option.viewOf);
    expect(views[0]).not.toEqual(views[1]);
    for (const view of views) expect(option.view.safeParse(view).error).toBeUndefined();
  });

  it.each(httpOptions)('let a person make a key with the same options: %s', (name) => {
    const maker = optionsWith(name);
    expect(exceededOption(maker, maker)).toBeNull();
  });
});

import { findModel, withAliases } from '../../../src/primary/cli/alias-list.js';

const models = [
  { id: 'a/big', name: 'Big', default: false },
  { id: 'a/small', name: 'Small', default: true, description: 'fast' },
];
const list = { count: 2, models };
const spelled = (name: string) => (name.includes('/') ? name : `a/${name}`);
const alias = (id: string, target: string) => ({ id, name: id, default: false, alias_of: target });

describe('The list of models', () => {
  it('ends with the aliases, and what they stand for', () => {
    const aliases = [
      { name: 'gpt-4o', target: 'big' },
      { name: '*', target: 'big' },
      { name: 'usual', target: 'default' },
      { name: 'big', target: 'small' },
      { name: 'next', target: 'b/unlisted' },
    ];
    expect(withAliases(list, aliases, spelled)).toEqual({
      count: 5,
      models: [...models, alias('gpt-4o', 'a/big'), alias('usual', 'a/small'), alias('next', 'b/unlisted')],
    });
  });

  it('has each name that a request may have, with what it stands for', () => {
    expect(findModel('a/small', list, 'a/small', spelled)).toEqual(models[1]);
    expect(findModel('anything', list, 'big', spelled)).toEqual(alias('anything', 'a/big'));
    expect(findModel('default', list, 'default', spelled)).toEqual(alias('default', 'a/small'));
    expect(findModel('b/x', list, 'b/x', spelled)).toBeNull();
  });
});

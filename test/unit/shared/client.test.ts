import { modelUsage, readClientId, usedModelIn, writeClientId } from '../../../src/shared/client.js';

it.each([
  ['key alice', 'key', 'alice'],
  ['user bob', 'user', 'bob'],
  ['address 2001:db8:0:1::/64', 'address', '2001:db8:0:1::/64'],
  ['key a b', 'key', 'a b'],
  ['other other', 'other', 'other'],
  ['group lab', 'other', 'group lab'],
] as const)('The client id of a request %p has the kind %s and the name %p', (client, kind, name) => {
  expect(readClientId(client)).toEqual({ kind, name });
  expect(writeClientId({ kind, name })).toBe(client);
});

it('The usage of one model has a name that gives back its owner and its model, and no name of a group is one by chance', () => {
  for (const owner of ['key ada', 'sso ada/laptop~1', 'group lab/%opus'] as const)
    expect(usedModelIn(modelUsage(owner, 'us/opus[1m]'))).toEqual([owner, 'us/opus[1m]']);
  for (const name of [
    'group 10/%',
    'group a/%opus',
    'group a/%%',
    'group a/%E2',
    'group a/%zz',
    'key ada',
    'user a/%opus',
  ] as const)
    expect(usedModelIn(name)).toEqual([name, null]);
});

import { modelUsage, readClientId, usedModelIn } from '../../../src/shared/client.js';

it.each([
  ['key alice', 'key', 'alice'],
  ['user bob', 'user', 'bob'],
  ['address 2001:db8:0:1::/64', 'address', '2001:db8:0:1::/64'],
  ['key a b', 'key', 'a b'],
  ['', 'other', ''],
  ['somebody', 'other', 'somebody'],
])('The client id of a request %p has the kind %s and the name %p', (client, kind, name) => {
  expect(readClientId(client)).toEqual({ kind, name });
});

it('The usage of one model has a name that gives back its owner and its model, and no name of a group is one by chance', () => {
  for (const owner of ['key ada', 'sso ada/laptop~1', 'group lab/%opus'])
    expect(usedModelIn(modelUsage(owner, 'us/opus[1m]'))).toEqual([owner, 'us/opus[1m]']);
  for (const name of [
    'group 10/%',
    'group a/%opus',
    'group a/%%',
    'group a/%E2',
    'group a/%zz',
    'key ada',
    'user a/%opus',
  ])
    expect(usedModelIn(name)).toEqual([name, null]);
});

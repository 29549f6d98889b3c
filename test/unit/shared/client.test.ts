import { readClientId } from '../../../src/shared/client.js';

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

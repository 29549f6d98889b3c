import { frontWarnings, localUrl, portFaults } from '../../../../src/shared/config/addresses.js';
import { storeFamiliesOf, storeSchema } from '../../../../src/shared/config/stores.js';

it.each([
  ['127.0.0.1', 'http://127.0.0.1:5051'],
  ['relay.example.org', 'http://relay.example.org:5051'],
  ['::1', 'http://[::1]:5051'],
  ['0.0.0.0', 'http://127.0.0.1:5051'],
  ['::', 'http://[::1]:5051'],
])('A service bound to %s is reachable from its machine at %s', (host, url) => {
  expect(localUrl(host, 5051)).toBe(url);
});

const agent = { MODEL_API_AGENT_PORT: 5052, MODEL_API_PORT: 5051 };
const memory = storeSchema(storeFamiliesOf([])).parse('memory');

it('The ports must differ', () => {
  expect(portFaults({ ...agent, MODEL_API_PORT: 5052 })).toEqual([
    'MODEL_API_AGENT_PORT: 5052 is MODEL_API_PORT: it needs a different port',
  ]);
  for (const fine of [agent, { MODEL_API_AGENT_PORT: 0, MODEL_API_PORT: 0 }, { MODEL_API_PORT: 5051 }, {}]) {
    expect(portFaults(fine)).toEqual([]);
  }
  const added = (number: number | null) => portFaults(agent, [{ variable: 'MODEL_API_ADDED_PORT', number }]);
  expect(added(null)).toEqual([]);
  expect(added(5051)).toEqual(['MODEL_API_ADDED_PORT: 5051 is MODEL_API_PORT: it needs a different port']);
  expect(added(5052)).toEqual(['MODEL_API_ADDED_PORT: 5052 is MODEL_API_AGENT_PORT: it needs a different port']);
});

it('A host behind a load balancer gets a warning if all clients would count as one, and if its conversations are not shared', () => {
  expect(frontWarnings({ ...agent, MODEL_API_STORE: memory })).toEqual([
    expect.stringContaining('MODEL_API_TRUST_PROXY'),
    expect.stringContaining('a store that hosts share'),
  ]);
  expect(frontWarnings({ MODEL_API_AGENT_PORT: null, MODEL_API_STORE: memory })).toEqual([]);
});

import { frontWarnings } from '../../../../src/features/agent-check/shared.js';
import { memoryPlace } from '../../../../src/shared/config/stores.js';

it('A host behind a load balancer gets a warning if all clients would count as one, and if its conversations are not shared', () => {
  const facts = { values: {}, settings: { store: memoryPlace } };
  expect(frontWarnings({ MODEL_API_AGENT_PORT: 5052 }, facts)).toEqual([
    expect.stringContaining('MODEL_API_TRUST_PROXY'),
    expect.stringContaining('a store that hosts share'),
  ]);
  expect(frontWarnings({ MODEL_API_AGENT_PORT: null }, facts)).toEqual([]);
});

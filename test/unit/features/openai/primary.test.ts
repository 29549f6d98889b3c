import { createOpenAi } from '../../../../src/features/openai/primary.js';
import type { calls } from '../../../../src/features/openai/shared.js';
import { MemoryResponses } from '../../../../src/features/stores/memory/memory-store.js';
import type { PrimaryCore } from '../../../../src/primary/features/feature.js';
import type { Handlers } from '../../../../src/shared/ipc/peer.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { headOf, turnOf } from '../../../support/stores/response-store-contract.js';

it('A stored response is stored, read and removed for its client', async () => {
  const config = { maxConversations: 10, conversationBytes: 400_000, conversationTtlMs: 1000 };
  const host = { heap: { touch: () => {} }, clock: new FakeClock() };
  const store = { responses: new MemoryResponses() };
  const core = { host, store, config, mayStore: () => true, yieldInOrder: async () => {} };
  const { gauges = [], ...part } = createOpenAi(core as unknown as PrimaryCore);
  const handlers = part.handlers as Handlers<typeof calls>;
  const counts = () => gauges.map(({ name, read }) => [name, Number(read()) > 0]);
  const key = { id: 'resp_1', client: 'key alice' as const };
  const response = { id: key.id, previous: null, messages: turnOf('hello'), head: headOf('resp_1'), body: '{}' };
  await handlers.storeResponse({ client: key.client, response });
  expect(await handlers.responsePiece({ ...key, from: 0 })).toEqual({ text: '{}', bytes: 2 });
  expect(await handlers.continuedText(key)).toEqual(headOf('resp_1'));
  const names = ['stored_responses', 'stored_response_bytes'];
  expect(counts()).toEqual(names.map((name) => [name, true]));
  await handlers.deleteResponse(key);
  expect(counts()).toEqual(names.map((name) => [name, false]));
  await expect(handlers.responsePiece({ ...key, from: 0 })).rejects.toMatchObject({ code: 'not_found' });
});

import { createReadBack } from '../../../../src/features/read-back/primary.js';
import type { PrimaryCore } from '../../../../src/primary/features/feature.js';

it('A conversation is looked up and deleted for its client', async () => {
  const calls: unknown[] = [];
  const conversations = { snapshot: (...call: unknown[]) => ({ snapshotOf: call }) };
  const conversationChanges = { removeConversation: async (...call: unknown[]) => calls.push(call) };
  const localJobs = { turnsInProgress: (client: string) => new Map([['id', { openTurnOf: client }]]) };
  const core = { config: {}, host: {}, conversations, conversationChanges, localJobs };
  const { handlers } = createReadBack(core as unknown as PrimaryCore);
  const call = (name: string) => handlers[name]?.({ id: 'id', client: 'key alice' } as never);
  expect(await call('conversation')).toEqual({
    snapshotOf: ['id', 'key alice'],
    openTurn: { openTurnOf: 'key alice' },
  });
  await call('deleteConversation');
  expect(calls).toEqual([['id', 'key alice']]);
});

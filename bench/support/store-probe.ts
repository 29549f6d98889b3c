import { randomBytes } from 'node:crypto';
import { ConversationStore } from '../../src/primary/conversations/conversation-store.js';
import { systemClock } from '../../src/shared/clock.js';

/**
 * Program that fills a conversation store up to its limit, and performs the operations that its parent sends. Argument:
 * number of conversations. Needs `--expose-gc`.
 */

export type StoreOperation = 'turn' | 'snapshot' | 'eviction' | 'lookup';

export interface StoreOrder {
  readonly operation: StoreOperation;
  readonly times: number;
  /** Number of conversations in use. */
  readonly among: number;
}

const size = Number(process.argv[2]);
const owner = 'key bench';
const limits = {
  ttlMs: 86_400_000,
  maxConversations: size,
  maxBytes: Number.MAX_SAFE_INTEGER,
  maxBytesEach: Number.MAX_SAFE_INTEGER,
};
const store = new ConversationStore(limits, systemClock);

function takeTurn(id: string | null, user: string, assistant: string): string {
  using turn = store.turn(id, owner, null, user.length);
  turn.openTurn();
  return turn.commit(user, assistant, 20).id;
}

/** Copies an ID to a new string, like the ID of an arriving request. */
function arrived(id: string): string {
  return Buffer.from(id, 'latin1').toString('latin1');
}

const texts = Array.from({ length: size * 2 }, () => randomBytes(50).toString('hex'));
gc?.();
const before = process.memoryUsage().heapUsed;
const ids: string[] = new Array(size);
for (let index = 0; index < size; index++) {
  ids[index] = takeTurn(null, texts[index * 2] as string, texts[index * 2 + 1] as string);
}
gc?.();
const idsArrayBytes = size * 8;
process.send?.((process.memoryUsage().heapUsed - before - idsArrayBytes) / size);

/** Map for comparison, with the minimum cost of a lookup. */
const bareMap = new Map(ids.map((id, index) => [arrived(id), index]));

const operations: Readonly<Record<StoreOperation, (id: string) => unknown>> = {
  turn: (id) => takeTurn(id, 'question', 'answer'),
  snapshot: (id) => store.snapshot(id, owner),
  lookup: (id) => bareMap.get(id),
  /** Must run last, because it evicts more and more of the known IDs. */
  eviction: () => takeTurn(null, 'question', 'answer'),
};

function someId(among: number): string {
  return arrived(ids[Math.floor(Math.random() * Math.min(among, size))] as string);
}

process.on('message', ({ operation, times, among }: StoreOrder) => {
  const chosen = Array.from({ length: times }, () => someId(among));
  const perform = operations[operation];
  const begun = process.hrtime.bigint();
  for (const id of chosen) perform(id);
  process.send?.(Number(process.hrtime.bigint() - begun) / times);
});

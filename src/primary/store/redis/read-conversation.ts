import type { StoredConversation, StoredTurn } from '../contract/conversations.js';
import type { RedisConnection } from './redis-connection.js';
import { decodeTurn, storedText } from './turn-codec.js';

/** What is read at a time, where turns are as long as those before: so much, and then others are answered. */
const pieceBytes = 1024 * 1024;
const firstCount = 4;
const maxCount = 1000;

interface ConversationKeys {
  readonly meta: string;
  readonly turns: string;
}

/** The turns without those of the first messages; null where the conversation is gone. */
export async function readConversation(
  redis: RedisConnection,
  id: string,
  { meta, turns }: ConversationKeys,
  from: number,
): Promise<StoredConversation | null> {
  const fields = ['client', 'system', 'created', 'active', 'count'];
  const [client, system, ...figures] = (await redis.call('read', 'HMGET', meta, ...fields)) as (Buffer | null)[];
  if (!client || !system) return null;
  const [createdAt = 0, lastActivityAt = 0, messageCount = 0] = figures.map(Number);
  const read = await readTurns(redis, turns, from / 2, messageCount / 2);
  if (read === null) return null;
  const text = system.toString('latin1', 0, 1) === '+' ? storedText(system.subarray(1)) : null;
  return { id, client: String(client), system: text, createdAt, lastActivityAt, turns: read };
}

/** null where there are fewer: the conversation was removed meanwhile. */
async function readTurns(redis: RedisConnection, key: string, from: number, to: number): Promise<StoredTurn[] | null> {
  const read: StoredTurn[] = [];
  let bytes = 0;
  for (let next = from; next < to; next = from + read.length) {
    const usualBytes = Math.max(1, bytes / Math.max(1, read.length));
    const count = bytes === 0 ? firstCount : Math.ceil(Math.min(maxCount, pieceBytes / usualBytes));
    const last = Math.min(next + count, to) - 1;
    const piece = (await redis.call('read', 'LRANGE', key, next, last)) as Buffer[];
    if (piece.length === 0) return null;
    bytes += piece.reduce((sum, turn) => sum + turn.length, 0);
    read.push(...piece.map(decodeTurn));
  }
  return read;
}

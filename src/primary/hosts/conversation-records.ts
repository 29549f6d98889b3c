import type { ConversationPage, ConversationSnapshot } from '../../shared/conversation.js';
import type { Image } from '../../shared/job.js';
import type { StoredConversation, StoredTurn, TurnChange } from '../store/contract/conversations.js';
import type { StoredText } from '../store/contract/stored-text.js';
import type { RedisConnection } from './redis-connection.js';

/** Turns are read in pieces of about so many bytes, as far as those before tell; then others are answered. */
const pieceBytes = 1024 * 1024;
const firstCount = 4;
const maxCount = 1000;
/** A text of so many bytes stays in memory as bytes. */
const minBufferBytes = 4096;
const lineEnd = 0x0a;

type ListedInRedis = ConversationPage['conversations'][number] & { readonly activity: number };

/** `figures`: messages, tokens, time of creation, and time of the last activity. */
export function snapshotOf(id: string, figures: readonly unknown[], ttlMs: number): ConversationSnapshot {
  const [messageCount = 0, tokensUsed = 0, createdAt = 0, lastActivityAt = 0] = figures.map(Number);
  return { id, messageCount, tokensUsed, createdAt, lastActivityAt, expiresAt: lastActivityAt + ttlMs };
}

/** `row`: the id, its place in the order of activity, the figures as above, and the title. */
export function listedConversation([id, activity, ...row]: readonly Buffer[], ttlMs: number): ListedInRedis {
  return { ...snapshotOf(String(id), row.slice(0, 4), ttlMs), title: String(row[4]), activity: Number(activity) };
}

/** The turns without those of the first `from` messages; null where the conversation is gone. */
export async function readConversation(
  redis: RedisConnection,
  id: string,
  from: number,
): Promise<StoredConversation | null> {
  const fields = ['client', 'system', 'created', 'active', 'count'];
  const row = (await redis.call('read', 'HMGET', redis.key('conversation', id), ...fields)) as (Buffer | null)[];
  const [client, system, ...figures] = row;
  if (!client || !system) return null;
  const [createdAt = 0, lastActivityAt = 0, messageCount = 0] = figures.map(Number);
  const turns = await readTurns(redis, redis.key('turns', id), from / 2, messageCount / 2);
  if (turns === null) return null;
  const text = system.toString('latin1', 0, 1) === '+' ? storedText(system.subarray(1)) : null;
  return { id, client: String(client), system: text, createdAt, lastActivityAt, turns };
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

/** A line of three numbers (tokens in all, bytes of the images and of the question), then all three texts. */
export function encodeTurn({ user, assistant, images, totalTokens }: TurnChange): Buffer {
  const shown = Buffer.from(images.length === 0 ? '' : JSON.stringify(images));
  const question = Buffer.from(user);
  const line = Buffer.from(`${totalTokens} ${shown.length} ${question.length}\n`);
  return Buffer.concat([line, shown, question, Buffer.from(assistant)]);
}

function decodeTurn(turn: Buffer): StoredTurn {
  const start = turn.indexOf(lineEnd) + 1;
  const [totalTokens = 0, imageBytes = 0, questionBytes = 0] = turn.toString('latin1', 0, start).split(' ').map(Number);
  const question = start + imageBytes;
  const answer = question + questionBytes;
  const images = imageBytes === 0 ? [] : (JSON.parse(turn.toString('utf8', start, question)) as readonly Image[]);
  return {
    texts: [storedText(turn.subarray(question, answer)), storedText(turn.subarray(answer))],
    images,
    totalTokens,
  };
}

/** A copy: a part of a buffer would keep all of it in memory. */
function storedText(bytes: Buffer): StoredText {
  if (bytes.length < minBufferBytes) return bytes.toString('latin1');
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(copy);
  return copy;
}

export function bytesOfText(text: StoredText): Buffer {
  return typeof text === 'string' ? Buffer.from(text, 'latin1') : text;
}

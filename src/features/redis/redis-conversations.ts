import { randomUUID } from 'node:crypto';
import { checkForkPoint, notFound } from '../../primary/conversations/conversation-limits.js';
import { firstWordsOf, type ListedPage, versionPage } from '../../primary/conversations/transcript.js';
import type {
  ConversationChange,
  ConversationJournal,
  StoredConversation,
  StoredTurn,
  TurnChange,
} from '../../primary/store/contract/conversations.js';
import { bytesOf, type StoredText, stored, textOf } from '../../primary/store/contract/stored-text.js';
import { type ClientText, clientText, holderOf } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import { type ConversationSnapshot, rootOf, type TitledConversation } from '../../shared/conversation.js';
import { RelayError, retryAfter, storeUnavailable } from '../../shared/errors.js';
import { newId } from '../../shared/ids.js';
import type { Attachment, Message } from '../../shared/job.js';
import { pieceOf } from '../stores/contract/answers.js';
import {
  type BodyPiece,
  type PutVerdict,
  type ResponseCounts,
  type ResponseKey,
  type ResponseLimits,
  type ResponseNode,
  type ResponsePart,
  type ResponseStore,
  responsePieceBytes,
  writtenInTurns,
} from '../stores/contract/responses.js';
import type { RedisConnection } from './redis-connection.js';
import { Unanswered } from './redis-faults.js';
import type { ScriptArguments, ScriptReply } from './redis-link.js';

/**
 * Time for which a turn lock is valid. A host renews it three times within this time; one that dies or stalls for
 * longer loses its turn.
 */
const lockMs = 10_000;
const ticksPerMs = 100;
/** Target size of a piece of turns, estimated from earlier turns. Redis serves other commands between pieces. */
const pieceBytes = 1024 * 1024;
const firstCount = 4;
const maxCount = 1000;
/** Texts from this size on are stored in memory as bytes. */
const minBufferBytes = 4096;
const lineEnd = 0x0a;
/** Conversations per page, and pages, that are read at most for a page of versions. */
const readAtOnce = 100;
const maxPages = 10;

export interface RedisLimits {
  readonly ttlMs: number;
  readonly maxConversations: number;
  /** Conversations of one client that other clients cannot evict. */
  readonly clientShare: number;
}

/** Length of a conversation, and the token of its turn lock; `token` is null if the caller did not get the lock. */
export interface SharedState {
  readonly messageCount: number;
  readonly token: number | null;
}

/** Conversations that several hosts use, one turn at a time. */
export type SharedConversations = Omit<
  RedisConversations,
  'restoreConversations' | 'commitChange' | 'removeConversation' | 'forget'
>;

/** A commit with an unknown outcome, and its name in Redis. */
interface OpenCommit {
  readonly change: TurnChange;
  readonly name: string;
}

export interface SharedObserver {
  /** Called when a turn was not stored because its conversation does not exist any more. */
  conversationRemoved(id: string): void;
  /** Called when Redis may have lost conversations. */
  reset(): void;
}

/** Owns the conversations in Redis. A commit with an unknown outcome is undone before Redis is used again. */
export class RedisConversations implements ConversationJournal {
  readonly lockMs = lockMs;
  readonly #redis: RedisConnection;
  readonly #limits: RedisLimits;
  readonly #clock: Pick<Clock, 'now'>;
  #observer: SharedObserver | null = null;
  readonly #toWithdraw: OpenCommit[] = [];
  /** Locks to release when Redis is up again. */
  readonly #toRelease: { readonly id: string; readonly token: number }[] = [];

  constructor(redis: RedisConnection, limits: RedisLimits, clock: Pick<Clock, 'now'>) {
    this.#redis = redis;
    const { ttlMs, maxConversations, clientShare } = limits; // exactly these fields become script arguments
    this.#limits = { ttlMs, maxConversations, clientShare };
    this.#clock = clock;
    redis.onBack(() => this.#withdrawAll());
    redis.onBack(() => this.#releaseAll());
  }

  /** Sets the only observer. */
  setObserver(observer: SharedObserver): void {
    this.#observer = observer;
    this.#redis.onConnected(() => observer.reset());
  }

  /** Yields nothing: a host reads a conversation when it needs it. */
  async *restoreConversations(): AsyncGenerator<StoredConversation> {}

  async commitChange(change: ConversationChange): Promise<void> {
    if (change.type !== 'turn') throw new Error('forks and titles are changed in Redis itself');
    const name = randomUUID();
    const reply = await this.#commit(change, name).catch((error) => {
      if (error instanceof Unanswered) this.#toWithdraw.push({ change, name });
      throw error;
    });
    if (reply.verdict === 'gone') this.#observer?.conversationRemoved(change.id);
    if (reply.verdict === 'stale') throw staleTurn();
  }

  #commit(change: TurnChange, name: string): Promise<ScriptReply> {
    const { id, client, messageCount, token, totalTokens } = change;
    return this.#redis.run('commit', 'conversations.commit', {
      ...{ id, client, before: messageCount - 2, token: token ?? 0, name },
      ...{ turn: encodeTurn(change), totalTokens, at: this.#clock.now() },
      ...this.#limits,
      ...(messageCount === 2 && beginningOf(change)),
    });
  }

  /** Does nothing: conversations expire in Redis. */
  forget(): void {}

  /**
   * Reads the length, and acquires the turn lock if it is wanted and free. null if the client has no such conversation.
   */
  async enter(id: string, client: ClientText, wantsLock: boolean): Promise<SharedState | null> {
    const args = { id, client, wantsLock: wantsLock ? 1 : 0, lockTicks: lockMs * ticksPerMs };
    const { verdict, remaining: rest } = await this.#redis.run('enter', 'conversations.enter', args);
    if (verdict !== 'ok') return null;
    const [messageCount, token] = rest.map(Number);
    return { messageCount: messageCount ?? 0, token: token || null };
  }

  /** Renews a lock. Returns false if another turn has it; true also if the conversation does not exist. */
  async renewLock(id: string, token: number): Promise<boolean> {
    const args = { id, token, lockTicks: lockMs * ticksPerMs };
    return (await this.#redis.run('enter', 'conversations.renew', args)).verdict !== 'stale';
  }

  /** Releases a lock as soon as Redis is usable. */
  releaseLock(id: string, token: number): void {
    this.#redis.run('enter', 'conversations.renew', { id, token, lockTicks: 0 }).catch(() => {
      if (!this.#redis.isUp) this.#toRelease.push({ id, token }); // otherwise the lock expires
    });
  }

  /** Reads the turns after the first `from` messages; null if the conversation does not exist. */
  readConversation(id: string, from: number): Promise<StoredConversation | null> {
    return readConversation(this.#redis, id, from);
  }

  async snapshot(id: string, client: ClientText): Promise<TitledConversation | null> {
    const fields = ['client', 'count', 'tokens', 'created', 'active', 'title', 'named', 'origins'];
    const row = (await this.#redis.call('read', 'HMGET', this.#metaOf(id), ...fields)) as (Buffer | null)[];
    const [owner, ...figures] = row;
    const [firstWords, named, origins] = figures.splice(4);
    if (String(owner) !== client) return null;
    const title = String(named ?? firstWords);
    return { ...snapshotOf(id, figures, this.#limits.ttlMs), title, origins: originsIn(origins) };
  }

  /** Sets the title; null restores the first words. Resolves with null if the client has no such conversation. */
  async rename(id: string, client: ClientText, title: string | null): Promise<TitledConversation | null> {
    const { verdict } = await this.#redis.run('commit', 'conversations.rename', { id, client, title: title ?? '' });
    return verdict === 'ok' ? this.snapshot(id, client) : null;
  }

  /**
   * Lists conversations of a client. For versions, it reads page after page up to a limit; Redis serves other commands
   * between pages.
   */
  async listConversations(
    client: ClientText,
    before: number | null,
    limit: number,
    versionOf: string | null = null,
  ): Promise<ListedPage> {
    const root = versionOf && (await this.#rootOf(versionOf));
    const found: ListedInRedis[] = [];
    let next = before;
    const [pages, count] = root === null ? [1, limit] : [maxPages, readAtOnce];
    for (let read = 0; read === 0 || (read < pages && next !== null); read++) {
      const page = await this.#read(client, next, count);
      found.push(...page.slice(0, count));
      next = page.length > count ? (found.at(-1)?.activity ?? null) : null;
    }
    return versionPage(found, next, { limit, root });
  }

  /** Yields this many messages of a conversation, oldest first; fewer if it has fewer. */
  async *texts(id: string, messageCount: number): AsyncGenerator<StoredText> {
    for await (const turns of turnPieces(this.#redis, this.#redis.key('turns', id), 0, messageCount / 2)) {
      for (const turn of turns) yield* textsIn(turn, placesIn(turn));
    }
  }

  async #rootOf(id: string): Promise<string> {
    const origins = (await this.#redis.call('read', 'HGET', this.#metaOf(id), 'origins')) as Buffer | null;
    return rootOf({ id, origins: originsIn(origins) });
  }

  /** Reads up to `count + 1` conversations, to find out whether more follow. */
  async #read(client: ClientText, from: number | null, count: number): Promise<ListedInRedis[]> {
    const { ttlMs } = this.#limits;
    const args = { client, before: from === null ? '+inf' : `(${from}`, limit: count + 1, ttlMs };
    const { remaining: rest } = await this.#redis.run('read', 'conversations.list', args);
    return (rest[0] as Buffer[][]).map((row) => listedConversation(row, ttlMs));
  }

  /** Removes a conversation of any client. */
  async removeConversation(id: string): Promise<void> {
    const client = await this.#redis.call('read', 'HGET', this.#metaOf(id), 'client');
    const { data: owner } = clientText.safeParse(String(client));
    if (owner !== undefined) await this.drop(id, owner);
  }

  /** Removes a conversation of this client. Resolves with whether it existed. */
  async drop(id: string, client: ClientText): Promise<boolean> {
    return (await this.#redis.run('remove', 'conversations.remove', { id, client })).verdict === 'ok';
  }

  /**
   * Forks a conversation. Rejects with `not_found`, with `validation_error` if the number of messages is not the end of
   * a turn, and with `store_unavailable`.
   */
  async fork(origin: string, client: ClientText, messageCount: number | null): Promise<TitledConversation> {
    const [id, now] = [newId(), this.#clock.now()];
    const args = { id, client, origin, messages: messageCount ?? '', at: now, ...this.#limits };
    const { verdict, remaining: rest } = await this.#redis.run('commit', 'conversations.fork', args);
    if (verdict === 'gone') notFound();
    const [count = 0, tokensUsed = 0] = rest.slice(0, 2).map(Number);
    if (verdict === 'range') checkForkPoint(messageCount ?? count, count);
    if (verdict !== 'ok') throw storeUnavailable();
    const expiresAt = now + this.#limits.ttlMs;
    const [title, origins] = rest.slice(2).map(String) as [string, string];
    return { id, title, origins, messageCount: count, tokensUsed, createdAt: now, lastActivityAt: now, expiresAt };
  }

  async #withdrawAll(): Promise<void> {
    for (let [first] = this.#toWithdraw; first !== undefined; [first] = this.#toWithdraw) {
      const { id, client, messageCount } = first.change;
      const args = { id, client, before: messageCount - 2, name: first.name };
      await this.#redis.runAnyway('conversations.withdraw', args);
      this.#toWithdraw.shift();
    }
  }

  /** Releases locks, so that the next turns need not wait for them to expire. */
  async #releaseAll(): Promise<void> {
    for (let [first] = this.#toRelease; first !== undefined; [first] = this.#toRelease) {
      await this.#redis.runAnyway('conversations.renew', { ...first, lockTicks: 0 });
      this.#toRelease.shift();
    }
  }

  #metaOf(id: string): string {
    return this.#redis.key('conversation', id);
  }
}

function beginningOf({ createdAt, user, system, version }: TurnChange): ScriptArguments {
  const storedSystem = system === null ? '-' : Buffer.concat([Buffer.from('+'), bytesOf(system)]);
  const { title: named, origins } = version ?? {};
  const title = firstWordsOf(stored(user));
  return { createdAt, title, named: named ?? '', origins: origins ?? '', system: storedSystem };
}

function staleTurn(): RelayError {
  const message =
    'the turn was not stored: this host lost its turn lock, and the conversation may have continued on another host';
  return new RelayError('store_unavailable', message, { retryAfterSeconds: retryAfter('turn_lock') });
}

type ListedInRedis = ListedPage['conversations'][number];

/** Builds a snapshot. `figures`: messages, tokens, time of creation, time of the last activity. */
function snapshotOf(id: string, figures: readonly unknown[], ttlMs: number): ConversationSnapshot {
  const [messageCount = 0, tokensUsed = 0, createdAt = 0, lastActivityAt = 0] = figures.map(Number);
  return { id, messageCount, tokensUsed, createdAt, lastActivityAt, expiresAt: lastActivityAt + ttlMs };
}

function originsIn(field: unknown): string | null {
  return field ? String(field) : null;
}

/** Decodes a list entry. `row`: id, activity number, the figures of `snapshotOf`, title, origins. */
function listedConversation([id, activity, ...row]: readonly Buffer[], ttlMs: number): ListedInRedis {
  const [title, origins] = row.slice(4).map(String) as [string, string];
  const snapshot = snapshotOf(String(id), row.slice(0, 4), ttlMs);
  return { ...snapshot, title, origins: origins || null, activity: Number(activity) };
}

/** Reads a conversation without its first `from` messages; null if it does not exist. */
async function readConversation(redis: RedisConnection, id: string, from: number): Promise<StoredConversation | null> {
  const fields = ['client', 'system', 'named', 'origins', 'created', 'active', 'count'];
  const row = (await redis.call('read', 'HMGET', redis.key('conversation', id), ...fields)) as (Buffer | null)[];
  const [owner, system, named, origins, ...figures] = row;
  const { data: client } = clientText.safeParse(String(owner));
  if (client === undefined || !system) return null;
  const [createdAt = 0, lastActivityAt = 0, messageCount = 0] = figures.map(Number);
  const turns = await readTurns(redis, redis.key('turns', id), from / 2, messageCount / 2);
  if (turns === null) return null;
  const text = system.toString('latin1', 0, 1) === '+' ? storedText(system.subarray(1)) : null;
  const title = named ? String(named) : null;
  const begun = { system: text, title, origins: originsIn(origins), createdAt };
  return { id, client, ...begun, lastActivityAt, turns };
}

/** Reads turns; null if the conversation was removed during the read. */
async function readTurns(redis: RedisConnection, key: string, from: number, to: number): Promise<StoredTurn[] | null> {
  const read: StoredTurn[] = [];
  for await (const turns of turnPieces(redis, key, from, to)) read.push(...turns.map(decodeTurn));
  return read.length === to - from ? read : null;
}

/** Reads turns piece by piece, up to `to` or the last one. */
async function* turnPieces(
  redis: RedisConnection,
  key: string,
  from: number,
  to: number,
): AsyncGenerator<readonly Buffer[]> {
  let bytes = 0;
  for (let next = from; next < to; ) {
    const usualBytes = Math.max(1, bytes / Math.max(1, next - from));
    const count = bytes === 0 ? firstCount : Math.ceil(Math.min(maxCount, pieceBytes / usualBytes));
    const last = Math.min(next + count, to) - 1;
    const piece = (await redis.call('read', 'LRANGE', key, next, last)) as Buffer[];
    if (piece.length === 0) return;
    bytes += piece.reduce((sum, turn) => sum + turn.length, 0);
    next += piece.length;
    yield piece;
  }
}

/**
 * Encodes a turn: a line with three numbers (total tokens, bytes of images, bytes of the question) and the optional
 * figures; then images, question and answer.
 */
function encodeTurn({ user, assistant, images, figures, totalTokens }: TurnChange): Buffer {
  const shown = Buffer.from(images.length === 0 ? '' : JSON.stringify(images));
  const question = Buffer.from(user);
  const numbers = `${totalTokens} ${shown.length} ${question.length}`;
  const line = Buffer.from(figures === null ? `${numbers}\n` : `${numbers} ${textOf(figures)}\n`);
  return Buffer.concat([line, shown, question, Buffer.from(assistant)]);
}

/** Parses the first line of a stored turn. Returns its words, and the places of the images and texts after it. */
function placesIn(turn: Buffer) {
  const start = turn.indexOf(lineEnd) + 1;
  const words = turn.toString('latin1', 0, start - 1).split(' ');
  const [totalTokens = 0, imageBytes = 0, questionBytes = 0] = words.slice(0, 3).map(Number);
  const question = start + imageBytes;
  return { words, totalTokens, start, question, answer: question + questionBytes };
}

/** Returns the question and the answer of a stored turn. */
function textsIn(turn: Buffer, { question, answer }: ReturnType<typeof placesIn>): StoredTurn['texts'] {
  return [storedText(turn.subarray(question, answer)), storedText(turn.subarray(answer))];
}

function decodeTurn(turn: Buffer): StoredTurn {
  const places = placesIn(turn);
  const { words, totalTokens, start, question } = places;
  const images =
    question === start ? [] : (JSON.parse(turn.toString('utf8', start, question)) as readonly Attachment[]);
  return {
    texts: textsIn(turn, places),
    images,
    figures: words.length > 3 ? words.slice(3).join(' ') : null,
    totalTokens,
  };
}

/** Copies a text: a slice would retain the whole buffer. */
function storedText(bytes: Buffer): StoredText {
  if (bytes.length < minBufferBytes) return bytes.toString('latin1');
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(copy);
  return copy;
}

/** Responses read at a time; Redis serves other commands between reads. */
const pieceCount = 20;
/** Responses that one script call removes at most. */
const maxExpired = 50;

/** Owns the stored responses in Redis, which all hosts share. Responses expire by the clock of Redis. */
export class RedisResponses implements ResponseStore {
  readonly #redis: RedisConnection;
  readonly #ttlMs: number;
  #counts: ResponseCounts = { count: 0, bytes: 0 };

  constructor(redis: RedisConnection, ttlMs: number) {
    this.#redis = redis;
    this.#ttlMs = ttlMs;
  }

  get counts(): ResponseCounts {
    return this.#counts;
  }

  /** Stores a response. With an unknown outcome it may remain stored. */
  async putResponse(node: ResponseNode, limits: ResponseLimits): Promise<PutVerdict> {
    const { id, client, previous, head } = node;
    const { verdict } = await this.#change('put', {
      ...{ id, client, holder: holderOf(client), previous: previous ?? '', head },
      ...(await writtenInTurns(node, limits)),
      ...limits,
    });
    return verdict as PutVerdict;
  }

  async readPiece(
    { id, client }: ResponseKey,
    from: number,
    _: number,
    part: ResponsePart = 'body',
  ): Promise<BodyPiece | null> {
    const args = { id, client, from, part, pieceBytes: responsePieceBytes };
    const { verdict, remaining: rest } = await this.#redis.run('response', 'responses.read', args);
    return verdict === 'ok' ? { text: pieceOf(rest[0] as Buffer), bytes: Number(rest[1]) } : null;
  }

  async readHead({ id, client }: ResponseKey): Promise<string | null> {
    const { verdict, remaining: rest } = await this.#redis.run('response', 'responses.head', {
      id,
      client,
      holder: holderOf(client),
    });
    return verdict === 'ok' ? String(rest[0]) : null;
  }

  async readMessages({ id, client }: ResponseKey): Promise<readonly Message[] | null> {
    const args = { id, client, holder: holderOf(client) };
    const { verdict, remaining: rest } = await this.#redis.run('response', 'responses.chain', args);
    if (verdict !== 'ok') return null;
    const ids = (rest[0] as Buffer[]).map(String).toReversed();
    const pieces: unknown[] = [];
    while (pieces.length < ids.length) {
      const next = ids.slice(pieces.length, pieces.length + pieceCount);
      pieces.push(...(await Promise.all(next.map((each) => this.#messagesOf(each)))));
    }
    if (pieces.includes(null)) return null; // removed during the read
    return pieces.flatMap((piece) => JSON.parse(String(piece)) as Message[]);
  }

  async removeResponse({ id, client }: ResponseKey): Promise<boolean> {
    return (await this.#change('remove', { id, client })).verdict === 'ok';
  }

  async expireResponses(): Promise<void> {
    for (let count = maxExpired; count === maxExpired; ) {
      count = Number((await this.#change('expire', { ttlMs: this.#ttlMs })).remaining[2]);
    }
  }

  #messagesOf(id: string): Promise<unknown> {
    return this.#redis.call('response', 'HGET', this.#redis.key('response', id), 'messages');
  }

  async #change(name: string, args: ScriptArguments) {
    const reply = await this.#redis.run('response', `responses.${name}`, args);
    const [count, bytes] = reply.remaining.map(Number);
    this.#counts = { count: count ?? 0, bytes: bytes ?? 0 };
    return reply;
  }
}

import { randomUUID } from 'node:crypto';
import type { Clock } from '../../shared/clock.js';
import type { ConversationPage, ConversationSnapshot } from '../../shared/conversation.js';
import { RelayError, storeUnavailable } from '../../shared/errors.js';
import { newId } from '../conversations/conversation.js';
import { checkForkPoint, notFound } from '../conversations/conversation-limits.js';
import { titleOf } from '../conversations/transcript.js';
import type {
  ConversationChange,
  ConversationJournal,
  SharedState,
  SharedStore,
  StoredConversation,
  TurnChange,
} from '../store/contract/conversations.js';
import { stored } from '../store/contract/stored-text.js';
import { bytesOfText, encodeTurn, listedConversation, readConversation, snapshotOf } from './conversation-records.js';
import type { RedisConnection } from './redis-connection.js';
import { Unanswered } from './redis-faults.js';
import type { ScriptArguments, ScriptReply } from './redis-link.js';

/** A host that stalls for longer, or dies, loses its turn. It renews the lock three times in this time. */
const lockMs = 10_000;
const ticksPerMs = 100;

export interface RedisLimits {
  readonly ttlMs: number;
  readonly maxConversations: number;
  /** Conversations of one client that no other client can push out. */
  readonly clientShare: number;
}

/** A commit that may have been done, and its name in Redis. */
interface OpenCommit {
  readonly change: TurnChange;
  readonly name: string;
}

/** Owns the conversations in Redis. A commit without an answer is undone before Redis is used again. */
export class RedisConversations implements ConversationJournal, SharedStore {
  readonly lockMs = lockMs;
  readonly #redis: RedisConnection;
  readonly #limits: RedisLimits;
  readonly #clock: Pick<Clock, 'now'>;
  #onGone: (id: string) => void = () => {};
  readonly #toWithdraw: OpenCommit[] = [];
  /** Locks that could not be released. */
  readonly #toRelease: { readonly id: string; readonly token: number }[] = [];

  constructor(redis: RedisConnection, limits: RedisLimits, clock: Pick<Clock, 'now'>) {
    this.#redis = redis;
    const { ttlMs, maxConversations, clientShare } = limits; // they are arguments of scripts
    this.#limits = { ttlMs, maxConversations, clientShare };
    this.#clock = clock;
    redis.onBack(() => this.#withdrawAll());
    redis.onBack(() => this.#releaseAll());
  }

  onGone(listener: (id: string) => void): void {
    this.#onGone = listener;
  }

  onReset(listener: () => void): void {
    this.#redis.onConnected(listener);
  }

  /** A host starts without any: it reads a conversation when it needs it. */
  async *restore(): AsyncGenerator<StoredConversation> {}

  async commit(change: ConversationChange): Promise<void> {
    if (change.type === 'fork') throw new Error('a fork is made by Redis itself');
    const name = randomUUID();
    const reply = await this.#commit(change, name).catch((error) => {
      if (error instanceof Unanswered) this.#toWithdraw.push({ change, name });
      throw error;
    });
    if (reply.verdict === 'gone') this.#onGone(change.id);
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

  /** Redis forgets by itself: each conversation has a time to live. */
  forget(): void {}

  async enter(id: string, client: string, wantsLock: boolean): Promise<SharedState | null> {
    const args = { id, client, wantsLock: wantsLock ? 1 : 0, lockTicks: lockMs * ticksPerMs };
    const { verdict, rest } = await this.#redis.run('enter', 'conversations.enter', args);
    if (verdict !== 'ok') return null;
    const [messageCount, token] = rest.map(Number);
    return { messageCount: messageCount ?? 0, token: token || null };
  }

  async renew(id: string, token: number): Promise<boolean> {
    const args = { id, token, lockTicks: lockMs * ticksPerMs };
    return (await this.#redis.run('enter', 'conversations.renew', args)).verdict !== 'stale';
  }

  release(id: string, token: number): void {
    this.#redis.run('enter', 'conversations.renew', { id, token, lockTicks: 0 }).catch(() => {
      if (!this.#redis.isUp) this.#toRelease.push({ id, token }); // else it expires
    });
  }

  read(id: string, from: number): Promise<StoredConversation | null> {
    return readConversation(this.#redis, id, from);
  }

  async snapshot(id: string, client: string): Promise<ConversationSnapshot | null> {
    const fields = ['client', 'count', 'tokens', 'created', 'active'];
    const [owner, ...figures] = (await this.#redis.call('read', 'HMGET', this.#metaOf(id), ...fields)) as Buffer[];
    return String(owner) === client ? snapshotOf(id, figures, this.#limits.ttlMs) : null;
  }

  async list(client: string, before: number | null, limit: number): Promise<ConversationPage> {
    const { ttlMs } = this.#limits;
    const args = { client, before: before === null ? '+inf' : `(${before}`, limit: limit + 1, ttlMs };
    const { rest } = await this.#redis.run('read', 'conversations.list', args);
    const found = (rest[0] as Buffer[][]).map((row) => listedConversation(row, ttlMs));
    const shown = found.slice(0, limit);
    const next = found.length > limit ? (shown.at(-1)?.activity ?? null) : null;
    return { conversations: shown.map(({ activity: _, ...conversation }) => conversation), next };
  }

  /** Also without knowing its client. */
  async remove(id: string): Promise<void> {
    const client = await this.#redis.call('read', 'HGET', this.#metaOf(id), 'client');
    if (client !== null) await this.drop(id, String(client));
  }

  async drop(id: string, client: string): Promise<boolean> {
    return (await this.#redis.run('remove', 'conversations.remove', { id, client })).verdict === 'ok';
  }

  async fork(origin: string, client: string, messageCount: number | null): Promise<ConversationSnapshot> {
    const [id, now] = [newId(), this.#clock.now()];
    const args = { id, client, origin, messages: messageCount ?? '', at: now, ...this.#limits };
    const { verdict, rest } = await this.#redis.run('commit', 'conversations.fork', args);
    if (verdict === 'gone') notFound();
    const [count = 0, tokensUsed = 0] = rest.map(Number);
    if (verdict === 'range') checkForkPoint(messageCount ?? count, count);
    if (verdict !== 'ok') throw storeUnavailable();
    const expiresAt = now + this.#limits.ttlMs;
    return { id, messageCount: count, tokensUsed, createdAt: now, lastActivityAt: now, expiresAt };
  }

  async #withdrawAll(): Promise<void> {
    for (let [first] = this.#toWithdraw; first !== undefined; [first] = this.#toWithdraw) {
      const { id, client, messageCount } = first.change;
      const args = { id, client, before: messageCount - 2, name: first.name };
      await this.#redis.runAnyway('conversations.withdraw', args);
      this.#toWithdraw.shift();
    }
  }

  /** So that the next turn need not wait until the locks expire. */
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

function beginningOf({ createdAt, user, system }: TurnChange): ScriptArguments {
  const storedSystem = system === null ? '-' : Buffer.concat([Buffer.from('+'), bytesOfText(system)]);
  return { createdAt, title: titleOf({ texts: [stored(user)] }), system: storedSystem };
}

function staleTurn(): RelayError {
  const message =
    'the turn was not kept: this host lost its turn lock, and the conversation may have gone on elsewhere';
  return new RelayError('store_unavailable', message, { retryAfterSeconds: 1 });
}

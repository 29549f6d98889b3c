import { randomUUID } from 'node:crypto';
import type { Clock } from '../../../shared/clock.js';
import type { ConversationPage, ConversationSnapshot } from '../../../shared/conversation.js';
import { RelayError, storeUnavailable } from '../../../shared/errors.js';
import { newId } from '../../conversations/conversation.js';
import { checkForkPoint, notFound } from '../../conversations/conversation-limits.js';
import { titleOf } from '../../conversations/transcript.js';
import type {
  ConversationChange,
  ConversationJournal,
  SharedState,
  SharedStore,
  StoredConversation,
  TurnChange,
} from '../contract/conversations.js';
import type { StoreOperation } from '../contract/store.js';
import { stored } from '../contract/stored-text.js';
import { listedConversation, snapshotOf } from './conversation-figures.js';
import type { ScriptName } from './lua.js';
import { readConversation } from './read-conversation.js';
import type { RedisConnection } from './redis-connection.js';
import { Unanswered } from './redis-faults.js';
import type { RedisArgument, ScriptReply } from './redis-link.js';
import { bytesOfText, encodeTurn } from './turn-codec.js';

/** A host that stalls for longer, or dies, loses its turn. It is renewed three times in this time. */
const lockMs = 10_000;
const ticksPerMs = 100;

export interface RedisLimits {
  readonly ttlMs: number;
  readonly maxConversations: number;
  /** Conversations of one client that no other client can push out. */
  readonly clientShare: number;
}

/** A commit of which nobody knows whether it was done. */
interface OpenCommit {
  readonly change: TurnChange;
  readonly name: string;
}

/** Owns the conversations in Redis. What nobody could tell to be done is undone before Redis is used again. */
export class RedisConversations implements ConversationJournal, SharedStore {
  readonly lockMs = lockMs;
  readonly #redis: RedisConnection;
  readonly #limits: RedisLimits;
  readonly #clock: Pick<Clock, 'now'>;
  #onGone: (id: string) => void = () => {};
  readonly #toWithdraw: OpenCommit[] = [];
  /** Locks that could not be given up. */
  readonly #toRelease: { readonly id: string; readonly token: number }[] = [];

  constructor(redis: RedisConnection, limits: RedisLimits, clock: Pick<Clock, 'now'>) {
    this.#redis = redis;
    this.#limits = limits;
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

  /** A host begins with none: each is fetched when it is asked for. */
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
    const { maxConversations, clientShare } = this.#limits;
    const kept = [encodeTurn(change), totalTokens, this.#clock.now()];
    const args = [id, client, messageCount - 2, token ?? 0, ...kept, maxConversations, clientShare, name];
    return this.#run('commit', 'commit', [id], [...args, ...(messageCount === 2 ? beginningOf(change) : [])]);
  }

  /** What is over is gone by itself: each conversation has a time to live. */
  forget(): void {}

  async enter(id: string, client: string, wantsLock: boolean): Promise<SharedState | null> {
    const args = [client, wantsLock ? 1 : 0, lockMs * ticksPerMs];
    const { verdict, rest } = await this.#redis.run('enter', 'enter', [this.#metaOf(id)], args);
    if (verdict !== 'ok') return null;
    const [messageCount, token] = rest.map(Number);
    return { messageCount: messageCount ?? 0, token: token || null };
  }

  async renew(id: string, token: number): Promise<boolean> {
    const args = [token, lockMs * ticksPerMs];
    return (await this.#redis.run('enter', 'renew', [this.#metaOf(id)], args)).verdict !== 'stale';
  }

  release(id: string, token: number): void {
    this.#redis.run('enter', 'renew', [this.#metaOf(id)], [token, 0]).catch(() => {
      if (!this.#redis.isUp) this.#toRelease.push({ id, token }); // else it ends of itself
    });
  }

  read(id: string, from: number): Promise<StoredConversation | null> {
    return readConversation(this.#redis, id, { meta: this.#metaOf(id), turns: this.#turnsOf(id) }, from);
  }

  async snapshot(id: string, client: string): Promise<ConversationSnapshot | null> {
    const fields = ['client', 'count', 'tokens', 'created', 'active'];
    const [owner, ...figures] = (await this.#redis.call('read', 'HMGET', this.#metaOf(id), ...fields)) as Buffer[];
    return String(owner) === client ? snapshotOf(id, figures, this.#limits.ttlMs) : null;
  }

  async list(client: string, before: number | null, limit: number): Promise<ConversationPage> {
    const args = [client, before === null ? '+inf' : `(${before}`, limit + 1];
    const { rest } = await this.#run('read', 'list', [], args);
    const found = (rest[0] as Buffer[][]).map((row) => listedConversation(row, this.#limits.ttlMs));
    const shown = found.slice(0, limit);
    const next = found.length > limit ? (shown.at(-1)?.activity ?? null) : null;
    return { conversations: shown.map(({ activity: _, ...conversation }) => conversation), next };
  }

  /** Of whichever client it is. */
  async remove(id: string): Promise<void> {
    const client = await this.#redis.call('read', 'HGET', this.#metaOf(id), 'client');
    if (client !== null) await this.drop(id, String(client));
  }

  async drop(id: string, client: string): Promise<boolean> {
    return (await this.#run('remove', 'remove', [id], [id, client])).verdict === 'ok';
  }

  async fork(id: string, client: string, messageCount: number | null): Promise<ConversationSnapshot> {
    const { maxConversations, clientShare, ttlMs } = this.#limits;
    const [fork, now] = [newId(), this.#clock.now()];
    const args = [client, fork, id, messageCount ?? '', now, maxConversations, clientShare];
    const { verdict, rest } = await this.#run('commit', 'fork', [id, fork], args);
    if (verdict === 'gone') notFound();
    const [count = 0, tokensUsed = 0] = rest.map(Number);
    if (verdict === 'range') checkForkPoint(messageCount ?? count, count);
    if (verdict !== 'ok') throw storeUnavailable();
    return { id: fork, messageCount: count, tokensUsed, createdAt: now, lastActivityAt: now, expiresAt: now + ttlMs };
  }

  /** A script that knows the lists too. */
  #run(
    operation: StoreOperation,
    name: ScriptName,
    ids: readonly string[],
    args: readonly RedisArgument[],
  ): Promise<ScriptReply> {
    return this.#redis.run(operation, name, this.#keysOf(ids), [this.#redis.key(), this.#limits.ttlMs, ...args]);
  }

  async #withdrawAll(): Promise<void> {
    for (let [first] = this.#toWithdraw; first !== undefined; [first] = this.#toWithdraw) {
      const { id, client, messageCount } = first.change;
      const args = [this.#redis.key(), this.#limits.ttlMs, id, client, messageCount - 2, first.name];
      await this.#redis.runAnyway('withdraw', this.#keysOf([id]), args);
      this.#toWithdraw.shift();
    }
  }

  /** Whoever comes next need not wait until they end. */
  async #releaseAll(): Promise<void> {
    for (let [first] = this.#toRelease; first !== undefined; [first] = this.#toRelease) {
      await this.#redis.runAnyway('renew', [this.#metaOf(first.id)], [first.token, 0]);
      this.#toRelease.shift();
    }
  }

  #keysOf(ids: readonly string[]): string[] {
    return ids.flatMap((id) => [this.#metaOf(id), this.#turnsOf(id)]);
  }

  #metaOf(id: string): string {
    return this.#redis.key('conversation', id);
  }

  #turnsOf(id: string): string {
    return this.#redis.key('turns', id);
  }
}

function beginningOf({ createdAt, user, system }: TurnChange): RedisArgument[] {
  const kept = system === null ? '-' : Buffer.concat([Buffer.from('+'), bytesOfText(system)]);
  return [createdAt, titleOf({ texts: [stored(user)] }), kept];
}

function staleTurn(): RelayError {
  const message =
    'the turn was not kept: this host lost its turn lock, and the conversation may have gone on elsewhere';
  return new RelayError('store_unavailable', message, { retryAfterSeconds: 1 });
}

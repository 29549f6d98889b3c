import { holderOf } from '../../shared/client.js';
import type { Message } from '../../shared/job.js';
import {
  type PutVerdict,
  type ResponseCounts,
  type ResponseKey,
  type ResponseLimits,
  type ResponseNode,
  type ResponseStore,
  written,
} from '../store/contract/responses.js';
import type { RedisConnection } from './redis-connection.js';
import type { ScriptArguments } from './redis-link.js';

/** Responses that are read at once: Redis serves others between them. */
const pieceCount = 20;
/** Responses that one script removes. */
const maxExpired = 50;

/** Owns the responses in Redis, which all hosts share. Redis itself forgets those that have expired, by its own clock. */
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

  /** Without an answer of Redis it may stay. */
  async put(node: ResponseNode, limits: ResponseLimits): Promise<PutVerdict> {
    const { id, client, previous } = node;
    const { verdict } = await this.#change('put', {
      ...{ id, client, holder: holderOf(client), previous: previous ?? '' },
      ...written(node, limits),
      ...limits,
    });
    return verdict as PutVerdict;
  }

  async body({ id, client }: ResponseKey): Promise<string | null> {
    const key = this.#redis.key('response', id);
    const [owner, body] = (await this.#redis.call('response', 'HMGET', key, 'client', 'body')) as (Buffer | null)[];
    return body && String(owner) === client ? String(body) : null;
  }

  async text({ id, client }: ResponseKey): Promise<readonly Message[] | null> {
    const args = { id, client, holder: holderOf(client) };
    const { verdict, rest } = await this.#redis.run('response', 'responses.chain', args);
    if (verdict !== 'ok') return null;
    const ids = (rest[0] as Buffer[]).map(String).toReversed();
    const pieces: unknown[] = [];
    while (pieces.length < ids.length) {
      const next = ids.slice(pieces.length, pieces.length + pieceCount);
      pieces.push(...(await Promise.all(next.map((each) => this.#messagesOf(each)))));
    }
    if (pieces.includes(null)) return null; // it was removed meanwhile
    return pieces.flatMap((piece) => JSON.parse(String(piece)) as Message[]);
  }

  async remove({ id, client }: ResponseKey): Promise<boolean> {
    return (await this.#change('remove', { id, client })).verdict === 'ok';
  }

  async expire(): Promise<void> {
    for (let count = maxExpired; count === maxExpired; ) {
      count = Number((await this.#change('expire', { ttlMs: this.#ttlMs })).rest[2]);
    }
  }

  #messagesOf(id: string): Promise<unknown> {
    return this.#redis.call('response', 'HGET', this.#redis.key('response', id), 'messages');
  }

  async #change(name: string, args: ScriptArguments) {
    const reply = await this.#redis.run('response', `responses.${name}`, args);
    const [count, bytes] = reply.rest.map(Number);
    this.#counts = { count: count ?? 0, bytes: bytes ?? 0 };
    return reply;
  }
}

import { createHash, randomUUID } from 'node:crypto';
import { holderOf } from '../../shared/client.js';
import type { Clock, StopTimer } from '../../shared/clock.js';
import { type RecordedBegin, type RecordedHead, recordedPieceBytes } from '../../shared/ipc/idempotency.js';
import { maxAnswerBytes, sizeOfAnswer } from '../idempotency/answer-shares.js';
import {
  type AnswerOfKey,
  answerTtlMs,
  type ClientKey,
  type IdempotencyStore,
  type KnownKey,
  nameOfKey,
  pieceOf,
} from '../store/contract/answers.js';
import type { RedisConnection } from './redis-connection.js';
import { isAnswer } from './redis-faults.js';

/** A host that dies, or stalls for longer, loses its keys. It renews them three times in this time. */
const holdMs = 10_000;
/** A request waits no longer for Redis: it runs without its key then. */
const limitMs = 200;

/** The reservation of a key for the request with that digest. */
interface KeyHold {
  readonly token: string;
  readonly digest: string;
}

/** Owns which keys this host has reserved in Redis. Every host knows the answers to all of them. */
export class RedisAnswers implements IdempotencyStore {
  readonly #redis: RedisConnection;
  /** By the hashes of the keys. */
  readonly #reserved = new Map<string, KeyHold>();
  readonly #stopRenewing: StopTimer;

  constructor(redis: RedisConnection, clock: Pick<Clock, 'every'>) {
    this.#redis = redis;
    this.#stopRenewing = clock.every(holdMs / 3, () => this.#renewAll());
    redis.onBack(() => this.#takeBackAll());
  }

  async take(key: ClientKey, digest: string): Promise<KnownKey> {
    const hash = hashOf(key);
    const token = randomUUID();
    const args = { hash, digest, token, holdMs, pieceBytes: recordedPieceBytes };
    const { verdict, rest } = await this.#redis.runWithin(limitMs, 'answers.take', args);
    const known = String(rest[0]);
    if (verdict === 'held') return { type: 'held', digest: known };
    if (verdict === 'answered') return { type: 'answered', digest: known, answer: answerOf(rest.slice(1)) };
    this.#reserved.set(hash, { token, digest });
    return { type: 'free' };
  }

  async read(key: ClientKey, digest: string, from: number): Promise<string> {
    const args = { hash: hashOf(key), digest, from, pieceBytes: recordedPieceBytes };
    const { rest } = await this.#redis.runWithin(limitMs, 'answers.read', args);
    return pieceOf(rest[0] as Buffer);
  }

  /** Rejects where another host has the key by now. */
  async keep(key: ClientKey, { digest, answer }: AnswerOfKey): Promise<void> {
    const hash = hashOf(key);
    const token = this.#reserved.get(hash)?.token ?? randomUUID();
    this.#reserved.delete(hash);
    const { body: text, ...head } = answer;
    const body = Buffer.from(text);
    const bytes = sizeOfAnswer({ ...key, bodyBytes: body.length });
    const { verdict } = await this.#redis.runWithin(limitMs, 'answers.store', {
      ...{ hash, token, digest, client: key.client, holder: holderOf(key.client) },
      ...{ head: JSON.stringify(head), body, bytes, ttlMs: answerTtlMs, maxBytes: maxAnswerBytes },
    });
    if (verdict !== 'ok') throw new Error('another host has the key');
  }

  release(key: ClientKey): void {
    const hash = hashOf(key);
    const reserved = this.#reserved.get(hash);
    this.#reserved.delete(hash);
    if (reserved !== undefined) this.#hold(hash, reserved, 0);
  }

  expire(): void {}

  close(): void {
    this.#stopRenewing();
  }

  #renewAll(): void {
    for (const [hash, reserved] of this.#reserved) this.#hold(hash, reserved, holdMs);
  }

  /** If that fails, the reservation expires. */
  #hold(hash: string, reserved: KeyHold, ms: number): void {
    this.#redis.runWithin(limitMs, 'answers.hold', { hash, ...reserved, holdMs: ms }).catch(() => {});
  }

  /** While Redis was away, or lost its data, a reservation may have expired, though its request still runs. */
  async #takeBackAll(): Promise<void> {
    for (const [hash, reserved] of this.#reserved) {
      await this.#redis.runAnyway('answers.hold', { hash, ...reserved, holdMs }).catch(toleratingAnswers);
    }
  }
}

function hashOf(key: ClientKey): string {
  return createHash('sha256').update(nameOfKey(key)).digest('hex');
}

function answerOf([head, bytes, piece]: readonly unknown[]): RecordedBegin {
  const begin = pieceOf(piece as Buffer);
  return { ...(JSON.parse(String(head)) as RecordedHead), begin, bytes: Number(bytes) };
}

/** A fault of one key is no fault of Redis. */
function toleratingAnswers(error: unknown): void {
  if (!isAnswer(error)) throw error;
}

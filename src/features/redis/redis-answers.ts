import { createHash, randomUUID } from 'node:crypto';
import { type ClientText, holderOf } from '../../shared/client.js';
import type { Clock, StopTimer } from '../../shared/clock.js';
import { ignoreFailure } from '../../shared/errors.js';
import {
  type AnswerOfKey,
  type AnswerStore,
  answerTtlMs,
  type ClientKey,
  type KnownKey,
  maxAnswerBytes,
  nameOfKey,
  pieceOf,
  type RecordedBegin,
  type RecordedHead,
  recordedPieceBytes,
  sizeOfAnswer,
} from '../stores/contract/answers.js';
import type { RedisConnection } from './redis-connection.js';
import { isAnswer } from './redis-faults.js';

/**
 * Time for which a key is reserved. A host renews it three times within this time; one that dies or stalls for longer
 * loses its keys.
 */
const holdMs = 10_000;
/** Limit for Redis. After it, the request runs without its idempotency key. */
const limitMs = 200;

/** The reservation of a key for the request with this digest. */
interface KeyHold {
  readonly token: string;
  readonly digest: string;
}

/** Owns the keys that this host has reserved in Redis. Recorded answers are shared by all hosts. */
export class RedisAnswers implements AnswerStore {
  readonly #redis: RedisConnection;
  /** Reservations of this host, by hash of the key. */
  readonly #reserved = new Map<string, KeyHold>();
  readonly #stopRenewing: StopTimer;

  constructor(redis: RedisConnection, clock: Pick<Clock, 'every'>) {
    this.#redis = redis;
    this.#stopRenewing = clock.every(holdMs / 3, () => this.#renewAll());
    redis.onBack(() => this.#takeBackAll());
  }

  async claimOrFind(key: ClientKey, digest: string): Promise<KnownKey> {
    const hash = hashOf(key);
    const token = randomUUID();
    const args = { hash, digest, token, holdMs, pieceBytes: recordedPieceBytes };
    const { verdict, remaining: rest } = await this.#redis.runWithin(limitMs, 'answers.take', args);
    const known = String(rest[0]);
    if (verdict === 'held') return { type: 'held', digest: known };
    if (verdict === 'answered') return { type: 'answered', digest: known, answer: answerOf(rest.slice(1)) };
    this.#reserved.set(hash, { token, digest });
    return { type: 'free' };
  }

  async readAnswer(key: ClientKey, digest: string, from: number): Promise<string> {
    const args = { hash: hashOf(key), digest, from, pieceBytes: recordedPieceBytes };
    const { remaining: rest } = await this.#redis.runWithin(limitMs, 'answers.read', args);
    return pieceOf(rest[0] as Buffer);
  }

  /** Reads an answer, whose id is the hash of its key. */
  async readById(client: ClientText, id: string, from: number): Promise<RecordedBegin | null> {
    const args = { hash: id, client, from, pieceBytes: recordedPieceBytes };
    const { verdict, remaining: rest } = await this.#redis.run('answer', 'answers.readById', args);
    return verdict === 'ok' ? answerOf(rest) : null;
  }

  /** Stores an answer. Rejects if another host has reserved the key since. */
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

  releaseKey(key: ClientKey): void {
    const hash = hashOf(key);
    const reserved = this.#reserved.get(hash);
    this.#reserved.delete(hash);
    if (reserved !== undefined) this.#hold(hash, reserved, 0);
  }

  expireAnswers(): void {}

  stopRenewals(): void {
    this.#stopRenewing();
  }

  #renewAll(): void {
    for (const [hash, reserved] of this.#reserved) this.#hold(hash, reserved, holdMs);
  }

  /** Renews or releases a reservation. If this fails, the reservation expires. */
  #hold(hash: string, reserved: KeyHold, ms: number): void {
    this.#redis.runWithin(limitMs, 'answers.hold', { hash, ...reserved, holdMs: ms }).catch(ignoreFailure);
  }

  /** Restores the reservations of running requests, which may have expired or been lost while Redis was down. */
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

/** Ignores an error reply for one key, which does not mean that Redis is down. */
function toleratingAnswers(error: unknown): void {
  if (!isAnswer(error)) throw error;
}

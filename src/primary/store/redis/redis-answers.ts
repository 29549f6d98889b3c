import { createHash, randomUUID } from 'node:crypto';
import { holderOf } from '../../../shared/client.js';
import type { Clock, StopTimer } from '../../../shared/clock.js';
import { type RecordedBegin, type RecordedHead, recordedPieceBytes } from '../../../shared/idempotency.js';
import { maxAnswerBytes, sizeOfAnswer } from '../../idempotency/answer-shares.js';
import {
  type AnswerOfKey,
  answerTtlMs,
  type ClientKey,
  type IdempotencyStore,
  type KnownKey,
  nameOfKey,
  pieceOf,
} from '../contract/answers.js';
import type { RedisConnection } from './redis-connection.js';
import { isAnswer } from './redis-faults.js';

/** A host that dies, or stalls for longer, loses its keys. They are renewed three times in this time. */
const holdMs = 10_000;
/** A request waits no longer for Redis: it would rather go on without. */
const limitMs = 200;

/** What a key is held with, and of which request it is. */
interface KeyHold {
  readonly token: string;
  readonly digest: string;
}

/** Owns which keys this host holds in Redis. An answer to any of them is known to every host. */
export class RedisAnswers implements IdempotencyStore {
  readonly #redis: RedisConnection;
  /** By their places in Redis. */
  readonly #held = new Map<string, KeyHold>();
  readonly #stopRenewing: StopTimer;

  constructor(redis: RedisConnection, clock: Pick<Clock, 'every'>) {
    this.#redis = redis;
    this.#stopRenewing = clock.every(holdMs / 3, () => this.#renewAll());
    redis.onBack(() => this.#takeBackAll());
  }

  /** Time is that of Redis, which forgets what is too old. */
  async take(key: ClientKey, digest: string): Promise<KnownKey> {
    const place = this.#placeOf(key);
    const token = randomUUID();
    const args = [digest, token, holdMs, recordedPieceBytes];
    const { verdict, rest } = await this.#redis.runWithin(limitMs, 'takeAnswer', [place], args);
    const known = String(rest[0]);
    if (verdict === 'held') return { type: 'held', digest: known };
    if (verdict === 'answered') return { type: 'answered', digest: known, answer: answerOf(rest.slice(1)) };
    this.#held.set(place, { token, digest });
    return { type: 'free' };
  }

  async read(key: ClientKey, digest: string, from: number): Promise<string> {
    const args = [digest, from, recordedPieceBytes];
    const { rest } = await this.#redis.runWithin(limitMs, 'readAnswer', [this.#placeOf(key)], args);
    return pieceOf(rest[0] as Buffer);
  }

  /** Rejects where another host has the key by now. */
  async keep(key: ClientKey, { digest, answer }: AnswerOfKey): Promise<void> {
    const place = this.#placeOf(key);
    const token = this.#held.get(place)?.token ?? randomUUID();
    this.#held.delete(place);
    const { body: text, ...head } = answer;
    const body = Buffer.from(text);
    const bytes = sizeOfAnswer({ ...key, bodyBytes: body.length });
    const named = [this.#redis.key(), hashOf(key), holderOf(key.client), token];
    const args = [...named, digest, JSON.stringify(head), body, bytes, answerTtlMs, maxAnswerBytes, key.client];
    const { verdict } = await this.#redis.runWithin(limitMs, 'keepAnswer', [place], args);
    if (verdict !== 'ok') throw new Error('another host has the key');
  }

  release(key: ClientKey): void {
    const place = this.#placeOf(key);
    const held = this.#held.get(place);
    this.#held.delete(place);
    if (held !== undefined) this.#hold(place, held, 0);
  }

  expire(): void {}

  close(): void {
    this.#stopRenewing();
  }

  #renewAll(): void {
    for (const [place, held] of this.#held) this.#hold(place, held, holdMs);
  }

  /** Where that fails, the key is free after its time. */
  #hold(place: string, { token, digest }: KeyHold, ms: number): void {
    this.#redis.runWithin(limitMs, 'holdAnswer', [place], [token, ms, digest]).catch(() => {});
  }

  /** While Redis was away, or lost what it had, the time of a key may have ended, though its request still runs. */
  async #takeBackAll(): Promise<void> {
    for (const [place, { token, digest }] of this.#held) {
      await this.#redis.runAnyway('holdAnswer', [place], [token, holdMs, digest]).catch(toleratingAnswers);
    }
  }

  #placeOf(key: ClientKey): string {
    return this.#redis.key('answer', hashOf(key));
  }
}

function hashOf(key: ClientKey): string {
  return createHash('sha256').update(nameOfKey(key)).digest('hex');
}

function answerOf([head, bytes, piece]: readonly unknown[]): RecordedBegin {
  const begin = pieceOf(piece as Buffer);
  return { ...(JSON.parse(String(head)) as RecordedHead), begin, bytes: Number(bytes) };
}

/** What Redis says against one key says nothing against it. */
function toleratingAnswers(error: unknown): void {
  if (!isAnswer(error)) throw error;
}

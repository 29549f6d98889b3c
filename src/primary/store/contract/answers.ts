import { StringDecoder } from 'node:string_decoder';
import type { RecordedAnswer, RecordedBegin } from '../../../shared/ipc/idempotency.js';

/** How long an answer can be replayed, by the wall clock: it outlives the service if the store does. */
export const answerTtlMs = 24 * 3_600_000;

/** A key as its client sends it: the same key of another client is another one. */
export interface ClientKey {
  readonly client: string;
  readonly key: string;
}

/** The answer to a key, and the request that it is for. */
export interface AnswerOfKey {
  readonly digest: string;
  readonly answer: RecordedAnswer;
}

/** The state of a key. `held`: another host is answering its request. */
export type KnownKey =
  | { readonly type: 'free' }
  | { readonly type: 'held'; readonly digest: string }
  | { readonly type: 'answered'; readonly digest: string; readonly answer: RecordedBegin };

/**
 * Stores answers for a replay. `Claims` knows which keys this host is answering at the moment. Times are milliseconds
 * since the epoch.
 */
export interface IdempotencyStore {
  /** A free key belongs to this host from then on. Rejects if the store cannot read it. */
  take(key: ClientKey, digest: string, at: number): Promise<KnownKey>;
  /** A piece of the body of the answer to this request, from that byte on; empty at its end, and once it is gone. */
  read(key: ClientKey, digest: string, from: number): Promise<string>;
  /** Resolves once the answer is stored, and rejects if it is not. In both cases the key leaves this host. */
  keep(key: ClientKey, answered: AnswerOfKey, at: number): Promise<void>;
  /** The key is free again, without an answer to the caller. */
  release(key: ClientKey): void;
  /** Removes what has expired by then. */
  expire(at: number): void;
}

/** A piece of a text in UTF-8, without the character that is cut off at its end. */
export function pieceOf(bytes: Uint8Array): string {
  return new StringDecoder('utf8').write(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
}

/** A name for the key and its client together: no key has a line end. */
export function nameOfKey({ client, key }: ClientKey): string {
  return `${client}\n${key}`;
}

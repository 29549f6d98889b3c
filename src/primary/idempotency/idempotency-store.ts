import { StringDecoder } from 'node:string_decoder';
import type { RecordedAnswer, RecordedBegin } from '../../shared/idempotency.js';

/** So long an answer is sent again, by the wall clock: it outlives the service where the store does. */
export const answerTtlMs = 24 * 3_600_000;

/** A key as its client sends it: the same of another client is another one. */
export interface ClientKey {
  readonly client: string;
  readonly key: string;
}

/** The answer to a key, and the request that it is for. */
export interface AnswerOfKey {
  readonly digest: string;
  readonly answer: RecordedAnswer;
}

/** What is known of a key. `held`: another host is answering its request. */
export type KnownKey =
  | { readonly type: 'free' }
  | { readonly type: 'held'; readonly digest: string }
  | { readonly type: 'answered'; readonly digest: string; readonly answer: RecordedBegin };

/**
 * Where answers are kept that may be sent again. What this host answers at the moment is known to `Claims`. Times are
 * milliseconds since the epoch.
 */
export interface IdempotencyStore {
  /** A key that is free is this host's from then on. Rejects where the store can't tell. */
  take(key: ClientKey, digest: string, at: number): Promise<KnownKey>;
  /** A piece of the body of the answer to this request, from that byte on; empty at its end, and where it is gone. */
  read(key: ClientKey, digest: string, from: number): Promise<string>;
  /** Resolves once the answer is kept, and rejects where it is not. Either way the key is no longer this host's. */
  keep(key: ClientKey, kept: AnswerOfKey, at: number): Promise<void>;
  /** The key is free again. Nobody waits for it. */
  release(key: ClientKey): void;
  /** Forgets what has expired by then. */
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

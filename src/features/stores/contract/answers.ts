import { StringDecoder } from 'node:string_decoder';
import type { ClientText } from '../../../shared/client.js';
import type { PublicCode } from '../../../shared/errors.js';

/**
 * Time for which a recorded answer can be replayed, by the wall clock: with a durable store it outlives the service.
 */
export const answerTtlMs = 24 * 3_600_000;

/** Limit for all recorded answers together. */
export const maxAnswerBytes = 64 * 1024 * 1024;

/** Estimated bytes of an answer in addition to its body. */
const overheadBytes = 1024;

/** Maximum size of one read of the body of a recorded answer. */
export const recordedPieceBytes = 32 * 1024;

/** Recorded answer to a request, without its body. */
export interface RecordedHead {
  readonly status: number;
  /** Headers of the answer itself, excluding headers of the connection. */
  readonly headers: Readonly<Record<string, string>>;
  /** Error code in the body, for the log and the metrics. */
  readonly error: PublicCode | null;
}

export interface RecordedAnswer extends RecordedHead {
  readonly body: string;
}

/** Recorded answer with the first piece of its body, and the size of the whole body in UTF-8. */
export interface RecordedBegin extends RecordedHead {
  readonly begin: string;
  readonly bytes: number;
}

/** Name of a request, and its client. Clients that send the same name do not share it. */
export interface ClientKey {
  readonly client: ClientText;
  readonly key: string;
}

/** A recorded answer and the digest of its request. */
export interface AnswerOfKey {
  readonly digest: string;
  readonly answer: RecordedAnswer;
}

/** The state of a key. `held`: another host answers the request with this key. */
export type KnownKey =
  | { readonly type: 'free' }
  | { readonly type: 'held'; readonly digest: string }
  | { readonly type: 'answered'; readonly digest: string; readonly answer: RecordedBegin };

/**
 * Stores recorded answers for replay. Their user knows which keys this host is answering. Times are milliseconds since
 * the epoch.
 */
export interface AnswerStore {
  /** Reserves the key for this host if it is free. Rejects if the store cannot read the key. */
  claimOrFind(key: ClientKey, digest: string, at: number): Promise<KnownKey>;
  /** Reads a piece of the recorded body, from byte `from`; empty at its end, and if the answer was removed. */
  readAnswer(key: ClientKey, digest: string, from: number): Promise<string>;
  /** Reads a recorded answer by its id in this store, with the piece of its body from byte `from`; null if it was removed. */
  readById(client: ClientText, id: string, from: number): Promise<RecordedBegin | null>;
  /** Resolves when the answer is stored; rejects if it could not be stored. Either way, this host releases the key. */
  keep(key: ClientKey, answered: AnswerOfKey, at: number): Promise<void>;
  /** Releases the key without a recorded answer. The caller does not wait for the store. */
  releaseKey(key: ClientKey): void;
  /** Removes the answers that have expired at time `at`. */
  expireAnswers(at: number): void;
}

/** Decodes a piece of UTF-8 text, without a character that is cut off at the end. */
export function pieceOf(bytes: Uint8Array): string {
  return new StringDecoder('utf8').write(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
}

/** Returns the bytes by which a recorded answer counts towards the size limit of all answers. */
export function sizeOfAnswer({ client, key, bodyBytes }: ClientKey & { readonly bodyBytes: number }): number {
  return bodyBytes + client.length + key.length + overheadBytes;
}

/** Returns a map key for the client and its key. The separator is safe: no key contains a line end. */
export function nameOfKey({ client, key }: ClientKey): string {
  return `${client}\n${key}`;
}

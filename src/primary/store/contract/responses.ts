import type { Message } from '../../../shared/job.js';

/** A response as its client knows it: the same id of another client is another one. */
export interface ResponseKey {
  readonly id: string;
  readonly client: string;
}

/** A stored response: a point in a text. Times are milliseconds since the epoch. */
export interface ResponseNode extends ResponseKey {
  /** The response that it follows, of the same client. Several may follow one. */
  readonly previous: string | null;
  readonly createdAt: number;
  /** What it adds to the text of the previous one. */
  readonly messages: readonly Message[];
  /** What a request that continues its text needs to know of the text, as JSON. */
  readonly head: string;
  /** The JSON that its client reads. */
  readonly body: string;
}

/** A piece of the body of a response, from a byte on; empty at its end. */
export interface BodyPiece {
  readonly text: string;
  /** The size of the whole body. */
  readonly bytes: number;
}

/** The bounds of all responses together. */
export interface ResponseLimits {
  readonly maxResponses: number;
  readonly maxBytes: number;
  /** From the creation of a response, or of the last one that continues its text. */
  readonly ttlMs: number;
}

export interface ResponseCounts {
  readonly count: number;
  readonly bytes: number;
}

/** `gone`: the previous response does not exist. `full`: there is no room that this client may take. */
export type PutVerdict = 'stored' | 'gone' | 'full';

/**
 * Stores responses. A response that others follow cannot be evicted; once removed, it keeps its messages for them. All of
 * it rejects with `store_unavailable` on a failure.
 */
export interface ResponseStore {
  /** As of the last operation here. */
  readonly counts: ResponseCounts;
  /** Evicts responses beyond the limits. Resolves when the response would outlive a power cut, if the store is durable. */
  put(node: ResponseNode, limits: ResponseLimits): Promise<PutVerdict>;
  /**
   * Reads as much of its body as crosses to a worker at once. null: the client has no such response. `after`: those that
   * were last continued by that time have expired.
   */
  read(key: ResponseKey, from: number, after: number): Promise<BodyPiece | null>;
  /** The head of its text; empty if an earlier version has stored it, null as for `read`. */
  head(key: ResponseKey, after: number): Promise<string | null>;
  /** All messages from the beginning of its text to its own. */
  text(key: ResponseKey, after: number): Promise<readonly Message[] | null>;
  /** Whether it existed. */
  remove(key: ResponseKey): Promise<boolean>;
  /** Removes what has expired, and refreshes the counts. */
  expire(after: number): Promise<void>;
}

/** What a response takes beside its texts. */
const overheadBytes = 1024;

/** A response as it is stored. */
export interface WrittenResponse {
  /** JSON. */
  readonly messages: Buffer;
  readonly body: Buffer;
  readonly bytes: number;
  /** What it counts as among clients: a client with many small responses has much, too. */
  readonly weight: number;
}

export function written({ messages, body }: ResponseNode, { maxBytes, maxResponses }: ResponseLimits): WrittenResponse {
  const texts = { messages: Buffer.from(JSON.stringify(messages)), body: Buffer.from(body) };
  const bytes = texts.messages.length + texts.body.length + overheadBytes;
  return { ...texts, bytes, weight: bytes + Math.ceil(maxBytes / maxResponses) };
}

import type { ClientText } from '../../../shared/client.js';
import { yieldToEventLoop } from '../../../shared/clock.js';
import type { Message } from '../../../shared/job.js';
import { jsonPieces } from '../../../shared/text/json-pieces.js';
import { piecesOf } from '../../../shared/text/well-formed.js';

/** The key of a response. Clients with the same response id do not share the response. */
export interface ResponseKey {
  readonly id: string;
  readonly client: ClientText;
}

/**
 * A stored response of the Responses API: the end of one branch of messages. Times are milliseconds since the epoch.
 */
export interface ResponseNode extends ResponseKey {
  /** Id of the previous response, of the same client; null for none. Several responses may follow the same one. */
  readonly previous: string | null;
  readonly createdAt: number;
  /** Messages that this response adds after the previous response. */
  readonly messages: readonly Message[];
  /** Summary of all messages up to here, as JSON (`ContinuedText`), for a request that continues this response. */
  readonly head: string;
  /** The JSON that the client reads. */
  readonly body: string;
}

export type ResponsePart = 'body' | 'messages';

/** A piece of a part of a response; `text` is empty at its end. */
export interface BodyPiece {
  readonly text: string;
  /** Size of the whole part. */
  readonly bytes: number;
}

/** Limits for all responses together. */
export interface ResponseLimits {
  readonly maxResponses: number;
  readonly maxBytes: number;
  /** Time to live, from the creation of a response or of the last response that continues it. */
  readonly ttlMs: number;
}

export interface ResponseCounts {
  readonly count: number;
  readonly bytes: number;
}

/** Result of `putResponse`. `gone`: the previous response does not exist. `full`: the share of the client is used up. */
export type PutVerdict = 'stored' | 'gone' | 'full';

/**
 * Stores responses. A response with followers is not evicted; if it is removed, its messages stay for its followers. On
 * a failure, all methods reject with `store_unavailable`.
 */
export interface ResponseStore {
  /** Totals after the last operation of this host. */
  readonly counts: ResponseCounts;
  /**
   * Stores a response, and evicts responses beyond the limits. Resolves when the response would survive a power cut, if
   * the store is durable.
   */
  putResponse(node: ResponseNode, limits: ResponseLimits): Promise<PutVerdict>;
  /**
   * Reads one piece of the body, or of its own messages as JSON, sized for one IPC message. null if the client has no such
   * response. Responses whose last continuation is not later than `after` have expired.
   */
  readPiece(key: ResponseKey, from: number, after: number, part?: ResponsePart): Promise<BodyPiece | null>;
  /** Reads the `head` of a response; empty if an earlier version stored the response, null as for `readPiece`. */
  readHead(key: ResponseKey, after: number): Promise<string | null>;
  /** Reads all messages from the first response of the chain to this one; null as for `readPiece`. */
  readMessages(key: ResponseKey, after: number): Promise<readonly Message[] | null>;
  /** Removes a response. Resolves with whether it existed. */
  removeResponse(key: ResponseKey): Promise<boolean>;
  /** Removes expired responses, and refreshes the counts. */
  expireResponses(after: number): Promise<void>;
}

/** Maximum size of one read of the body of a stored response. */
export const responsePieceBytes = 192 * 1024;

/** Estimated memory of a response in addition to its texts. */
const overheadBytes = 1024;

/** A response, encoded for the store. */
export interface WrittenResponse {
  /** Messages as JSON. */
  readonly messages: Buffer;
  readonly body: Buffer;
  readonly bytes: number;
  /** Weight in the share of a client: the bytes plus a fixed cost, so that many small responses count too. */
  readonly weight: number;
}

export function written({ messages, body }: ResponseNode, limits: ResponseLimits): WrittenResponse {
  return weighed(Buffer.from(JSON.stringify(messages)), Buffer.from(body), limits);
}

/** Encodes a response like `written`, in several turns of the event loop if it is long. */
export async function writtenInTurns(
  { messages, body }: ResponseNode,
  limits: ResponseLimits,
): Promise<WrittenResponse> {
  return weighed(await encodedInTurns(jsonPieces(messages)), await encodedInTurns(piecesOf(body, pieceUnits)), limits);
}

function weighed(messages: Buffer, body: Buffer, { maxBytes, maxResponses }: ResponseLimits): WrittenResponse {
  const bytes = messages.length + body.length + overheadBytes;
  return { messages, body, bytes, weight: bytes + Math.ceil(maxBytes / maxResponses) };
}

/** UTF-16 units that are encoded in one turn. */
const pieceUnits = 256 * 1024;

async function encodedInTurns(texts: Iterable<string>): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let units = 0;
  for (const text of texts) {
    pieces.push(Buffer.from(text));
    units += text.length;
    if (units < pieceUnits) continue;
    units = 0;
    await yieldToEventLoop();
  }
  return Buffer.concat(pieces);
}

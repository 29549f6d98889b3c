import type { IncomingMessage } from 'node:http';
import { createParser } from 'eventsource-parser';
import { yieldToEventLoop } from '../../shared/clock.js';
import { JsonStructure } from '../../shared/text/json-structure.js';
import { type RpcAnswer, type RpcId, rpcMessage } from '../protocols/json-rpc.js';
import type { Lookup } from '../protocols/limited-lookup.js';
import { AnswerTooLarge, connectionFault, sendPost, textOfAnswer } from '../protocols/outgoing-post.js';

/** Most bytes of one answer that are read, and most pieces in which they may arrive. */
const maxAnswerBytes = 1024 * 1024;
const maxPieces = 20_000;
/** Limits for the JSON of one answer: parsing more values could block the event loop of the primary. */
const structureLimits = { maxValues: 20_000, maxDepth: 200 };
/** Most events of one answer. */
const maxEvents = 1000;
/** UTF-16 units of an event stream that are parsed between two turns of the event loop. */
const sliceLength = 4 * 1024;

/** Fault of the search server, as one clause for the log of the operator. */
export class SearchServerFault extends Error {
  override readonly name = 'SearchServerFault';
  /** Whether the server no longer knows the session of the request. */
  readonly isSessionLost: boolean;

  constructor(message: string, isSessionLost = false) {
    super(message);
    this.isSessionLost = isSessionLost;
  }
}

/** Target of posted messages. */
export interface McpTarget {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly lookup: Lookup;
}

/** Answer of the server. `message` is null for a notification. */
interface McpReply {
  readonly message: RpcAnswer | null;
  /** Session that the server has named; null if it has named none. */
  readonly sessionId: string | null;
}

/**
 * Posts one message in the way of MCP's Streamable HTTP, and resolves with the answer to the request with this id; with
 * `id` null, the message is a notification. Follows no redirect, keeps no connection, and opens no other stream. Rejects
 * with a `SearchServerFault`, or if the signal aborts.
 */
export async function postMessage(
  { url, headers, lookup }: McpTarget,
  body: string,
  id: RpcId | null,
  signal: AbortSignal,
): Promise<McpReply> {
  const sent = {
    ...headers,
    accept: 'application/json, text/event-stream',
    'accept-encoding': 'identity',
  };
  try {
    const answer = await sendPost({ url, headers: sent, body, signal, lookup });
    try {
      checkStatus(answer.statusCode ?? 0, 'mcp-session-id' in headers);
      const { 'mcp-session-id': named } = answer.headers;
      const sessionId = typeof named === 'string' && named !== '' ? named : null;
      return { message: id === null ? null : await answerIn(answer, id), sessionId };
    } finally {
      answer.on('error', () => {}).destroy();
    }
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof SearchServerFault) throw error;
    if (error instanceof AnswerTooLarge) throw new SearchServerFault(`its answer ${error.message}`);
    throw new SearchServerFault(connectionFault(error));
  }
}

function checkStatus(status: number, hasSession: boolean): void {
  if (status >= 200 && status < 300) return;
  if (status >= 300 && status < 400) throw new SearchServerFault(`it answered ${status}, a redirect`);
  throw new SearchServerFault(`it answered ${status}`, status === 404 && hasSession);
}

/** Returns the answer with this id, as the whole body or as one of the events of a stream. */
async function answerIn(answer: IncomingMessage, id: RpcId): Promise<RpcAnswer> {
  const { 'content-type': contentType = '', 'content-encoding': encoding = 'identity' } = answer.headers;
  const type = contentType.split(';', 1)[0]?.trim().toLowerCase();
  if (encoding !== 'identity') throw new SearchServerFault('it answered with a compressed body');
  if (type === 'text/event-stream') return answerInEvents(answer, id);
  if (type !== 'application/json') throw new SearchServerFault('it answered with neither JSON nor an event stream');
  const pieces: string[] = [];
  for await (const piece of textOfAnswer(answer, maxAnswerBytes, maxPieces)) pieces.push(piece);
  const message = new Answers(id).findAnswer(pieces.join(''));
  if (message === null) throw new SearchServerFault('it answered with JSON that is no answer to the request');
  return message;
}

async function answerInEvents(answer: IncomingMessage, id: RpcId): Promise<RpcAnswer> {
  const found: RpcAnswer[] = [];
  const answers = new Answers(id);
  const parser = createParser({
    onEvent: ({ data }) => {
      const message = found.length > 0 ? null : answers.findAnswer(data);
      if (message !== null) found.push(message);
    },
    onError: () => answers.count(), // a line that is no field: the parser makes an error with its stack for each
  });
  let pieces: string[] = [];
  for await (const piece of textOfAnswer(answer, maxAnswerBytes, maxPieces)) {
    pieces.push(piece);
    if (!/[\r\n]/.test(piece)) continue; // the parser would read a long line again with each piece
    const lines = pieces.join('');
    pieces = [];
    for (let at = 0; at < lines.length; at += sliceLength) {
      parser.feed(lines.slice(at, at + sliceLength));
      if (found[0] !== undefined) return found[0];
      await yieldToEventLoop();
    }
  }
  throw new SearchServerFault('its event stream ended without the answer');
}

/** Finds the answer to the request with this id among the messages of the server, and limits their number and values. */
class Answers {
  readonly #id: RpcId;
  readonly #structure = new JsonStructure(structureLimits);
  #count = 0;

  constructor(id: RpcId) {
    this.#id = id;
  }

  /** Counts an event or a wrong line. Throws a `SearchServerFault` if they are too many. */
  count(): void {
    if (++this.#count > maxEvents) throw new SearchServerFault(`its answer has more than ${maxEvents} events`);
  }

  /** Returns null for any other text or message. Throws a `SearchServerFault` if a limit is exceeded. */
  findAnswer(text: string): RpcAnswer | null {
    this.count();
    const fault = this.#structure.countText(text);
    if (fault !== null) throw new SearchServerFault(`its answer ${fault}`);
    const message = rpcMessage(text);
    return (message?.type === 'result' || message?.type === 'error') && message.id === this.#id ? message : null;
  }
}

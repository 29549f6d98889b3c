import http, { type Agent, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import https from 'node:https';
import type { Lookup } from './limited-lookup.js';

/** POST of this service to another server. */
export interface OutgoingPost {
  readonly url: string;
  readonly headers: OutgoingHttpHeaders;
  /** Text of JSON. */
  readonly body: string;
  readonly signal: AbortSignal;
  readonly lookup?: Lookup;
  /** Keeps connections open. Without it, each request has its own connection. */
  readonly agent?: Agent;
}

/** A server has sent a larger answer than the service reads. The message is a clause without a subject. */
export class AnswerTooLarge extends Error {
  override readonly name = 'AnswerTooLarge';
}

/** Returns the client of Node for a URL. A `fetch` would take 30 MB in each process. */
export function httpClientFor(url: string): typeof http | typeof https {
  return new URL(url).protocol === 'https:' ? https : http;
}

/**
 * Resolves with the answer when its headers have arrived. The caller must read or destroy it. The request follows no
 * redirects, because its headers may be secret.
 */
export function sendPost({ url, headers, body, signal, lookup, agent }: OutgoingPost): Promise<IncomingMessage> {
  const { request } = httpClientFor(url);
  const sent = { ...headers, 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  const options = { method: 'POST', agent: agent ?? false, headers: sent, signal, ...(lookup && { lookup }) };
  return new Promise((resolve, reject) => {
    request(url, options)
      .on('error', reject)
      .on('response', resolve)
      .on('close', () => reject(new Error('it was closed without an answer')))
      .end(body);
  });
}

/**
 * Yields the text of an answer in pieces, and destroys an answer that is not read to its end. Throws an `AnswerTooLarge`
 * if it has more bytes or pieces.
 */
export async function* textOfAnswer(
  answer: IncomingMessage,
  maxBytes: number,
  maxPieces = Number.POSITIVE_INFINITY,
): AsyncGenerator<string> {
  answer.on('error', () => {}); // an error after the last read
  let bytes = 0;
  let count = 0;
  for await (const piece of answer.setEncoding('utf8') as AsyncIterable<string>) {
    bytes += Buffer.byteLength(piece);
    if (bytes > maxBytes) throw new AnswerTooLarge(`is longer than ${maxBytes} bytes`);
    if (++count > maxPieces) throw new AnswerTooLarge(`has more than ${maxPieces} pieces`);
    yield piece;
  }
}

/** Returns why a request got no answer, as a clause for the log, which contains nothing of the URL beyond its host. */
export function connectionFault(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return `no connection: ${code ?? message}`;
}

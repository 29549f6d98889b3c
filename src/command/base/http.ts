import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { createParser } from 'eventsource-parser';

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly url: string;
  readonly socketPath?: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer | undefined;
  /** Longest time without a byte, in milliseconds. */
  readonly idleTimeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/**
 * Resolves when the headers have arrived, before the body is read. The request and the body fail after the idle
 * timeout.
 * fetch is not used: on Node 20.20 it can wait forever if a connection closes at once, and can miss its signal.
 */
export function send({ url, socketPath, body, idleTimeoutMs, signal, ...head }: HttpRequest): Promise<IncomingMessage> {
  const request = url.startsWith('https:') ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    const options = { ...head, timeout: idleTimeoutMs, agent: false, ...(socketPath && { socketPath }) };
    const sent = request(url, { ...options, ...(signal && { signal }) });
    sent.once('timeout', () => sent.destroy(new Error(`no data for ${idleTimeoutMs / 1000} s`)));
    sent.once('response', (response) => {
      // Passes the error on, because the response alone would fail with an error that does not name the cause.
      sent.once('error', (error) => response.destroy(error));
      resolve(response);
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

/** Server-sent event. */
export interface ServerEvent {
  readonly event: string;
  readonly data: string;
  /** Last ID that the stream has sent, up to and including this event. */
  readonly id?: string;
}

/** Parses server-sent events from chunks that may be split anywhere. Drops an unfinished event at the end. */
export async function* readEvents(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent> {
  const decoder = new TextDecoder();
  const events: ServerEvent[] = [];
  let lastId: string | undefined;
  const parser = createParser({
    onEvent: ({ event = 'message', data, id = lastId }) => {
      lastId = id;
      events.push({ event, data, ...(id !== undefined && { id }) });
    },
  });
  for await (const chunk of chunks) {
    parser.feed(decoder.decode(chunk, { stream: true }));
    yield* events.splice(0);
  }
}

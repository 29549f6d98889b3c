import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly url: string;
  readonly socketPath?: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
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
  let event = 'message';
  let data: string[] = [];
  let id: string | undefined;
  for await (const line of readLines(chunks)) {
    const [, field, value = ''] = /^([^:]*)(?:: ?([\s\S]*))?$/.exec(line) ?? [];
    if (field === 'event') event = value;
    if (field === 'data') data.push(value);
    if (field === 'id') id = value;
    if (line !== '') continue;
    if (data.length > 0) yield { event, data: data.join('\n'), ...(id !== undefined && { id }) };
    event = 'message';
    data = [];
  }
}

/** Yields lines that end in LF, CR or CR LF. A CR and its LF may arrive in different chunks. */
async function* readLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let parts: string[] = [];
  let endedInCr = false;
  for await (const chunk of chunks) {
    const decoded = decoder.decode(chunk, { stream: true });
    if (decoded === '') continue;
    const text = endedInCr && decoded.startsWith('\n') ? decoded.slice(1) : decoded;
    endedInCr = decoded.endsWith('\r');
    const [first = '', ...others] = text.split(/\r\n|\r|\n/);
    parts.push(first);
    for (const next of others) {
      yield parts.join('');
      parts = [next];
    }
  }
}

import http, { type IncomingMessage, type RequestOptions } from 'node:http';
import https from 'node:https';
import { type FindAddresses, limitedLookup } from '../../shared/limited-lookup.js';

/** Result of one attempt. `reason` is for the log, and contains nothing of the URL beyond its host. */
export type AttemptResult =
  | { readonly kind: 'accepted' }
  /** `isFinal`: the receiver no longer exists, so that no further attempt is made. */
  | { readonly kind: 'failed'; readonly reason: string; readonly isFinal: boolean };

/** Sends a notice until the signal aborts. `isOfClient`: whether a client has named the receiver. Never rejects. */
export type PostNotice = (
  url: string,
  headers: Readonly<Record<string, string>>,
  body: string,
  signal: AbortSignal,
  isOfClient: boolean,
) => Promise<AttemptResult>;

/** Bytes of an answer that are read, so that the receiver can send its end. Their content has no meaning. */
const maxAnswerBytes = 4096;
const goneStatus = 410;

/**
 * Returns a function that sends notices over HTTP. It follows no redirects and does not keep connections open. Names of
 * clients never delay the lookup of the operator's receiver.
 */
export function noticePoster(version: string, find?: FindAddresses): PostNotice {
  const [ofClients, ofOperator] = [limitedLookup(find), limitedLookup(find)];
  return async (url, headers, body, signal, isOfClient) => {
    const sent = {
      ...headers,
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(body)),
      'user-agent': `prompt-relay/${version}`,
    };
    try {
      const options = {
        method: 'POST',
        agent: false,
        headers: sent,
        signal,
        lookup: isOfClient ? ofClients : ofOperator,
      } as const;
      return resultOf(await statusOf(url, options, body));
    } catch (error) {
      const { code, message } = (signal.aborted ? signal.reason : error) as NodeJS.ErrnoException;
      return { kind: 'failed', reason: signal.aborted ? message : `no connection: ${code ?? message}`, isFinal: false };
    }
  };
}

/** Resolves with the status of the answer, without waiting for the rest of it. */
function statusOf(url: string, options: RequestOptions, body: string): Promise<number> {
  const { request } = new URL(url).protocol === 'https:' ? https : http;
  return new Promise((resolve, reject) => {
    request(url, options)
      .on('error', reject)
      .on('response', (answer) => {
        endAnswer(answer);
        resolve(answer.statusCode ?? 0);
      })
      .end(body);
  });
}

function endAnswer(answer: IncomingMessage): void {
  let bytes = 0;
  answer.on('error', () => {}); // the status counts, whatever becomes of the rest
  answer.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > maxAnswerBytes) answer.destroy();
  });
}

function resultOf(status: number): AttemptResult {
  if (status >= 200 && status < 300) return { kind: 'accepted' };
  const reason = status >= 300 && status < 400 ? `it answered ${status}, a redirect` : `it answered ${status}`;
  return { kind: 'failed', reason, isFinal: status === goneStatus };
}

import type { IncomingMessage } from 'node:http';
import { type FindAddresses, limitedLookup } from '../protocols/limited-lookup.js';
import { connectionFault, sendPost, textOfAnswer } from '../protocols/outgoing-post.js';

/** Result of one attempt. `reason` is for the log, and contains nothing of the URL beyond its host. */
export type AttemptResult =
  | { readonly kind: 'accepted' }
  /** `isFinal`: the receiver no longer exists, so that no further attempt is made. */
  | { readonly kind: 'failed'; readonly reason: string; readonly isFinal: boolean };

/**
 * Sends a notice until the signal aborts, and leaves no open connection. `isOfClient`: whether a client has named the
 * receiver. Never rejects.
 */
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
  return async (url, sent, body, signal, isOfClient) => {
    const headers = { ...sent, 'user-agent': `prompt-relay/${version}` };
    try {
      const answer = await sendPost({ url, headers, body, signal, lookup: isOfClient ? ofClients : ofOperator });
      await readRest(answer).catch(() => {}); // the status counts, whatever becomes of the rest
      return resultOf(answer.statusCode ?? 0);
    } catch (error) {
      const reason = signal.aborted ? (signal.reason as Error).message : connectionFault(error);
      return { kind: 'failed', reason, isFinal: false };
    }
  };
}

async function readRest(answer: IncomingMessage): Promise<void> {
  for await (const _ of textOfAnswer(answer, maxAnswerBytes));
}

function resultOf(status: number): AttemptResult {
  if (status >= 200 && status < 300) return { kind: 'accepted' };
  const reason = status >= 300 && status < 400 ? `it answered ${status}, a redirect` : `it answered ${status}`;
  return { kind: 'failed', reason, isFinal: status === goneStatus };
}

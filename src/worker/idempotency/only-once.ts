import { createHash } from 'node:crypto';
import { isCancelled, isDefect, toRelayError } from '../../shared/errors.js';
import type { ClaimItem, ClaimOrder, RecordedBegin } from '../../shared/ipc/idempotency.js';
import { untilGone } from '../http/disconnect.js';
import type { Primary, Reply } from '../http/exchange.js';
import { sendRecordedError } from '../http/send-json.js';
import { write } from '../http/write.js';
import { Recording } from './recording.js';

/** How an answer is asked for, as far as the body alone does not say so. */
export type AnswerManner = 'plain' | 'stream' | 'background';

/**
 * Has `answer` called for the first request with a key, and what it sends recorded; sends the recorded answer to every
 * further one. Rejects with `idempotency_mismatch` and `idempotency_in_progress`. Without a key there is nothing to it.
 */
export async function onlyOnce(
  primary: Primary,
  res: Reply,
  manner: AnswerManner,
  answer: () => Promise<void>,
): Promise<void> {
  const { client, idempotencyKey: key } = res.locals;
  if (key === null) return answer();
  const order = { client, key, digest: digestOf(res, manner) };
  const held = primary.stream('claim', order);
  try {
    const first = (await held.next()).value as ClaimItem;
    if (first.type === 'recorded') return await sendAgain(primary, res, order, first.answer);
    res.locals.recording = recordingFor(primary, first.claim);
    await answer();
  } catch (error) {
    await failWith(error, res);
  } finally {
    await held.return(undefined);
  }
}

function recordingFor(primary: Primary, claim: number): Recording {
  const failed = { isRecorded: false };
  return new Recording(async (answer) => {
    const { isRecorded } = await primary.call('record', { claim, answer }).catch(() => failed);
    return isRecorded;
  });
}

/** A failure after the start is an answer like any other. */
async function failWith(error: unknown, res: Reply): Promise<void> {
  if (isCancelled(error) || res.headersSent || res.locals.recording === null) throw error;
  await sendRecordedError(res, toRelayError(error));
  if (isDefect(error)) throw error; // it belongs in the log, too
}

/** Piece by piece: a client may read slowly, and send the same request many times. */
async function sendAgain(primary: Primary, res: Reply, order: ClaimOrder, answer: RecordedBegin): Promise<void> {
  const { status, headers, error, begin, bytes } = answer;
  using caller = untilGone(res);
  res.locals.error = error;
  res.writeHead(status, { ...headers, 'Idempotency-Replayed': 'true', 'Content-Length': bytes });
  let piece = begin;
  for (let sent = 0; sent < bytes; ) {
    if (sent > 0) piece = (await primary.call('recordedPiece', { ...order, from: sent })).text;
    if (piece === '') return void res.destroy(); // it is forgotten by now
    sent += Buffer.byteLength(piece);
    await write(res, piece, caller.signal);
  }
  res.end();
}

/** The name of the client is part of the key, not of the request. */
function digestOf(res: Reply, manner: AnswerManner): string {
  const { route, bodyDigest } = res.locals;
  return createHash('sha256').update(`${res.req.method} ${route} ${manner} ${bodyDigest}`).digest('hex');
}

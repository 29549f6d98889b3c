import type { AnswerBody } from '../answer/answer-body.js';
import type { Reply } from '../http/exchange.js';

/** What of the headers belongs to an answer, and not to its exchange. */
const answerHeaders = [
  ...['Content-Type', 'Cache-Control', 'X-Accel-Buffering', 'Location', 'Preference-Applied'],
  ...['X-Session', 'X-Conversation-Id', 'X-Ignored-Parameters', 'X-Should-Retry'],
] as const;

/** Says of an answer to a request with a key that it is not kept. */
export const notRecorded = { name: 'Idempotency-Recorded', value: 'false' } as const;

const accepted = 202;

/** What was written so far is recorded already; `last` is what is still to be sent. */
export interface LastOfAnswer {
  readonly status: number;
  readonly type: string;
  readonly last: AnswerBody | string;
}

/**
 * Has the answer kept for the key of the request, before the last of it is sent: a client that has all of it is never
 * answered by a second run. Resolves with whether the client has to be told that it is not kept. Of a request that has no
 * key, or that did not get as far as the model, nothing is kept.
 */
export async function recordAnswer(res: Reply, { status, type, last }: LastOfAnswer): Promise<boolean> {
  const { recording, error } = res.locals;
  if (recording === null || !isBinding(res, status)) return false;
  res.locals.recording = null;
  if (typeof last === 'string') recording.add(last);
  else await recording.addAll(last.pieces());
  return !(await recording.finish({ status, headers: { ...headersOf(res), 'Content-Type': type }, error }));
}

/** Whether the model was asked, or will be. What tells to come back later is none: sent again, it would tell so for a day. */
function isBinding(res: Reply, status: number): boolean {
  const hasStarted = res.locals.job?.hasStarted === true;
  return (hasStarted || status === accepted) && !res.hasHeader('Retry-After');
}

function headersOf(res: Reply): Record<string, string> {
  const set = answerHeaders.filter((name) => res.hasHeader(name));
  return Object.fromEntries(set.map((name) => [name, String(res.getHeader(name))]));
}

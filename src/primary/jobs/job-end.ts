import type { ConversationSnapshot } from '../../shared/conversation.js';
import { type RelayError, toRelayError, toWire } from '../../shared/errors.js';
import {
  type FailedOutcome,
  type JobDone,
  type JobEnd,
  type JobFailed,
  type Outcome,
  outcomes,
  type RefusedAnswer,
  unknownJobUsage,
} from '../../shared/job.js';
import type { Redactor } from '../cli/process/redactor.js';
import type { Answered } from './answered.js';
import { withoutEcho } from './echo.js';
import type { Job } from './job.js';

/** Ends of jobs, as their readers and the store get them. */

/** Outcomes of a waiting job whose cause may be temporary. */
const passingOutcomes: readonly Outcome[] = ['cli_error', 'queue_timeout', 'shutting_down', 'store_unavailable'];

/** Returns the end of an answered job. */
export function doneEnd(job: Job, answered: Answered, conversation: ConversationSnapshot | null): JobDone {
  const { text, usage, model, estimate, stopSequence, calls, isCutShort, ignores, thoughts = [] } = answered;
  const { searches = [], citations = [], blocks = [], additions = [] } = answered;
  const answer = { text, usage, model: model ?? job.route.label, estimate, stopSequence, conversation };
  const more = {
    ...(calls !== undefined && { calls }),
    ...(isCutShort && { isCutShort }),
    ...(thoughts.length > 0 && { thoughts }),
    ...(searches.length > 0 && { searches }),
    ...(citations.length > 0 && { citations }),
    ...(blocks.length > 0 && { blocks }),
    ...(additions.length > 0 && { additions }),
    ...(ignores && { ignores }),
  };
  return { type: 'job-end', outcome: 'ok', ...answer, ...more, ...job.figures };
}

/** Returns the end of a failed job. `answer`: the answer of a model that refused. */
export function failedEnd(job: Job, thrown: unknown, answer: RefusedAnswer | null = null): JobFailed {
  const { stderr, ...failure } = toWire(thrown);
  const output = stderr === undefined ? {} : { stderr: withoutEcho(stderr, textsOf(job)) };
  const end = { outcome: outcomeOf(thrown), failure: { ...failure, ...output }, ...(answer !== null && { answer }) };
  return { type: 'job-end', ...end, ...job.figures };
}

/** Yields all texts that the program got, newest first. */
function* textsOf({ request, turn, addedTexts }: Job): Generator<string> {
  const { text, results = [], system, history } = request;
  yield* addedTexts.toReversed();
  yield text;
  for (const result of results) yield result.text;
  yield turn?.system ?? system ?? '';
  for (const message of (turn?.history ?? history).toReversed()) {
    yield message.text;
    for (const { text: result } of message.results ?? []) yield result;
  }
}

/** Whether a background job must be retried after this end. */
export function mustRetry(end: JobEnd, hasStarted: boolean): boolean {
  if (hasStarted || end.outcome === 'ok') return false;
  return passingOutcomes.includes(end.outcome) || end.failure.code === 'concurrency_limited';
}

/** Returns the end of a job that was refused without waiting. */
export function refusedEnd(refusal: RelayError): JobFailed {
  const failure = toWire(refusal);
  return { type: 'job-end', outcome: outcomeOf(refusal), failure, queueMs: 0, executionMs: 0, ...unknownJobUsage };
}

/**
 * Whether the request was rejected before it ran, for example because its conversation was deleted. A job that has
 * waited as long as its client accepts was not rejected.
 */
export function isRefused(end: JobEnd): end is JobFailed {
  if (end.outcome === 'ok' || end.failure.code === end.outcome) return false;
  return end.outcome !== 'queue_timeout' || end.queueMs === 0;
}

function outcomeOf(thrown: unknown): FailedOutcome {
  const { code } = toRelayError(thrown);
  if (code === 'wait_too_long') return 'queue_timeout';
  return outcomes.find((outcome): outcome is FailedOutcome => outcome === code) ?? 'internal_error';
}

/** Redacts an error, because programs and adapters may print the operator's secrets. */
export function redactedEnd({ failure, ...end }: JobFailed, redactor: Pick<Redactor, 'redact'>): JobFailed {
  const { message, stderr } = failure;
  const texts = { message: redactor.redact(message), ...(stderr !== undefined && { stderr: redactor.redact(stderr) }) };
  return { ...end, failure: { ...failure, ...texts } };
}

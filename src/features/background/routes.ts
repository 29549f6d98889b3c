import type { Request } from 'express';
import { limitQuery, usualPage } from '../../shared/api/conversations.js';
import {
  allQuery,
  type DeletedJob,
  type JobBody,
  type JobList,
  jobCursorQuery,
  keepEndedQuery,
  lastEventId,
  statusQuery,
} from '../../shared/api/jobs.js';
import type { JobView } from '../../shared/background.js';
import type { ClientText } from '../../shared/client.js';
import { fromWire, invalid, RelayError } from '../../shared/errors.js';
import { isAdmin } from '../../worker/access/authenticate.js';
import { OwnStream, ownFormats } from '../../worker/api/ask.js';
import { queryOf } from '../../worker/http/body.js';
import { EventStream, eventText } from '../../worker/http/event-stream.js';
import type { AsyncHandler } from '../../worker/http/exchange.js';
import { errorBodyOf, sendBody, sendJson, untilGone, workerLeaves } from '../../worker/http/responses.js';
import type { JobAdmission } from '../../worker/jobs/admission.js';
import { type CompletedAnswer, eventIn, type WrittenEvent } from '../../worker/jobs/answer-format.js';
import type { OfflineRoutes } from '../../worker/jobs/offline-routes.js';
import { follow, type JobParts } from '../../worker/jobs/run-job.js';
import { cancelledBy, formOf, listedJob, offlineBody, storedBody } from './answers.js';
import type { JobCalls } from './shared.js';

/** Routes for jobs with open requests, and for background jobs, which were sent with `Prefer: respond-async`. */

/** Access to the answers of background jobs. `offlineRoutes`: APIs of features. */
interface StoredAnswers {
  readonly primary: JobCalls;
  readonly offlineRoutes: OfflineRoutes;
}

export function getJobs(primary: JobCalls): AsyncHandler {
  return async (req, res) => {
    const { client, requestId } = res.locals;
    const limit = Number(queryOf(req, 'limit', limitQuery) ?? usualPage);
    const status = queryOf(req, 'status', statusQuery) ?? null;
    const cursor = queryOf(req, 'cursor', jobCursorQuery);
    const before = cursor === undefined ? null : Number(cursor);
    const isOfAll = queryOf(req, 'all', allQuery) === 'true';
    if (isOfAll && !isAdmin(res))
      throw new RelayError('forbidden', 'the jobs of all clients need an API key with the scope admin');
    const order = { client: isOfAll ? null : client, status, before, limit };
    const { jobs, next } = await primary.call('jobs', order);
    const next_cursor = next === null ? null : String(next);
    const listed = jobs.map((job) => ({ ...listedJob(job), ...(isOfAll && { client: job.client }) }));
    sendJson(res, { jobs: listed, next_cursor, request_id: requestId } satisfies JobList);
  };
}

export function getJob(answers: StoredAnswers & { readonly features: Pick<JobAdmission, 'jobFields'> }): AsyncHandler {
  return async (req, res) => {
    const { primary, offlineRoutes, features } = answers;
    const { client, requestId } = res.locals;
    using caller = untilGone(res);
    const job = await primary.call('job', { id: String(req.params.job_id), client });
    const more = await features.jobFields(job);
    if (job.status !== 'succeeded') return sendJson(res, { ...jobBodyOf(job, requestId), ...more });
    const body = await storedBody(primary, job, client, (answer) =>
      JSON.stringify({
        ...listedJob(job),
        ...more,
        result: formatOf(job, offlineRoutes)(answer),
        request_id: requestId,
      }),
    );
    await sendBody(res, body, caller.signal);
  };
}

/**
 * Streams the events of a background job from the beginning, or after the client's last event. `closing` is aborted
 * when this worker is about to exit.
 */
export function getJobEvents(answers: StoredAnswers & Pick<JobParts, 'clock'>, closing: AbortSignal): AsyncHandler {
  return async (req, res) => {
    const { client } = res.locals;
    const after = lastEventOf(req);
    const job = await answers.primary.call('job', { id: String(req.params.job_id), client });
    formOf(job);
    using out = new EventStream(res, answers.clock);
    const isOpen = job.endedAt === null;
    if (isOpen || req.method === 'HEAD') out.beginStream(); // the first event may be late
    if (req.method === 'HEAD') return out.end();
    using caller = untilGone(res, isOpen ? closing : undefined);
    try {
      await sendJobEvents(answers, job, after, out, client, caller.signal);
    } catch (error) {
      if (error !== workerLeaves || res.writableNeedDrain) throw error;
    }
    if (res.headersSent) out.end();
    else res.status(204).end(); // EventSource reconnects after any other status
  };
}

export function deleteJob(primary: JobCalls): AsyncHandler {
  return async (req, res) => {
    const { client, requestId } = res.locals;
    const id = String(req.params.job_id);
    const keepsEnded = queryOf(req, 'keep_ended', keepEndedQuery) === 'true';
    const { status } = await primary.call('deleteJob', { id, client, isAdmin: isAdmin(res), keepsEnded, requestId });
    const fate = { status, deleted: status === null };
    sendJson(res, { success: true, job_id: id, ...fate, request_id: requestId } satisfies DeletedJob);
  };
}

function lastEventOf(req: Request): LastEvent {
  const id = req.get('last-event-id');
  if (id === undefined || id === '') return { id: 0, thoughts: 0 };
  const { success, error } = lastEventId.safeParse(id);
  if (!success) throw invalid('Last-Event-ID', error.issues[0]?.message ?? 'is not valid');
  const [text, thoughts = 0] = id.split('-').map(Number);
  return { id: text ?? 0, thoughts };
}

function jobBodyOf(job: JobView, requestId: string): JobBody {
  const error = job.failure && errorBodyOf(fromWire(job.failure), job.requestId);
  return { ...listedJob(job), ...(error !== null && { error }), request_id: requestId };
}

/**
 * Id of the last event, greater than the id of any text. The number is fixed, because a client may have received more
 * text than the store has, if the host died or the program corrected its text.
 */
export const endId = 999_999_999_999_999;

/** Last event that a client has. `thoughts`: number of UTF-16 units of thoughts that it has. */
interface LastEvent {
  readonly id: number;
  readonly thoughts: number;
}

/**
 * Adds ids to the events for one client. The id of the start is 1; the id of a text is 1 plus the number of UTF-16
 * units up to its end. If the client gets thoughts, a hyphen and the number of their units follow. A client that
 * reconnects gets the missing text and thoughts, however they are split.
 */
class NumberedStream extends OwnStream {
  readonly #after: LastEvent;
  #length = 0;
  #thoughtLength = 0;

  /** `after`: the client's last event. */
  constructor(bodyOf: (answer: CompletedAnswer) => object, requestId: string, after: LastEvent) {
    super(bodyOf, requestId);
    this.#after = after;
  }

  override formatStart(queueMs: number): string {
    return this.#numbered(1, () => super.formatStart(queueMs));
  }

  override formatEvent(event: WrittenEvent): string {
    if (event.type === 'text-delta') return this.#writeText(event.text);
    return event.type === 'thought-delta' ? this.#writeThought(event.text) : super.formatEvent(event);
  }

  #writeText(text: string): string {
    const unread = text.slice(Math.max(0, this.#after.id - 1 - this.#length));
    this.#length += text.length;
    return unread === '' ? '' : this.#placed(super.formatEvent({ type: 'text-delta', text: unread }));
  }

  #writeThought(text: string): string {
    const piece = this.thoughtPiece(text);
    const unread = piece.slice(Math.max(0, this.#after.thoughts - this.#thoughtLength));
    this.#thoughtLength += piece.length;
    return unread === '' || this.#after.id >= endId ? '' : this.#placed(eventText('thought', { text: unread }));
  }

  override formatEnd(answer: CompletedAnswer): string {
    return this.#numbered(endId, () => super.formatEnd(answer));
  }

  override formatFailure(error: RelayError): string {
    return this.#numbered(endId, () => super.formatFailure(error));
  }

  cancelled(jobId: string, byAdmin: boolean): string {
    return this.#numbered(endId, () => eventText('cancelled', { job_id: jobId, ...cancelledBy(byAdmin) }));
  }

  #numbered(id: number, event: () => string): string {
    return id <= this.#after.id ? '' : `id: ${id}\n${event()}`;
  }

  /** Adds the id of a text or a thought. */
  #placed(event: string): string {
    const thoughts = this.#thoughtLength === 0 ? '' : `-${this.#thoughtLength}`;
    return `id: ${this.#length + 1}${thoughts}\n${event}`;
  }
}

/** Returns the format of the corresponding plain request. */
function formatOf(job: JobView, offlineRoutes: OfflineRoutes): (answer: CompletedAnswer) => object {
  const { route } = formOf(job);
  return route === '/ask' || route === '/chat' ? ownFormats[route].body : offlineBody(job, offlineRoutes);
}

/** Sends all events after the id `after` to a client. The final answer comes from the store. */
export async function sendJobEvents(
  { primary, offlineRoutes }: StoredAnswers,
  job: JobView,
  after: LastEvent,
  out: EventStream,
  client: ClientText,
  signal: AbortSignal,
): Promise<void> {
  const format = new NumberedStream(formatOf(job, offlineRoutes), job.requestId, after);
  const end = await follow(primary.stream('jobEvents', { id: job.id, client }, signal), async (event) => {
    const text = eventIn(format, event);
    if (text !== '') await out.writeEvents(text, signal);
  });
  if (end === null || after.id >= endId) return;
  if (end.outcome === 'cancelled')
    return out.writeEvents(format.cancelled(job.id, end.failure.cancelledBy !== undefined), signal);
  if (end.outcome !== 'ok') return out.writeEvents(format.formatFailure(fromWire(end.failure)), signal);
  const body = await storedBody(primary, job, client, (answer) => format.formatEnd(answer));
  await out.writeLast(body, signal);
}

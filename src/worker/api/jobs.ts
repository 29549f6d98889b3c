import type { Request } from 'express';
import { cursorQuery, limitQuery, usualPage } from '../../shared/api/conversations.js';
import { type DeletedJob, type JobBody, type JobList, lastEventId, statusQuery } from '../../shared/api/jobs.js';
import type { BackgroundJobView } from '../../shared/background.js';
import { timestamp } from '../../shared/clock.js';
import { fromWire, invalid } from '../../shared/errors.js';
import { queryOf } from '../http/body.js';
import { EventStream } from '../http/event-stream.js';
import type { AsyncHandler, Primary } from '../http/exchange.js';
import { errorBodyOf, sendBody, sendJson, untilGone, workerLeaves } from '../http/responses.js';
import type { CompletedAnswer } from '../jobs/answer-format.js';
import { storedBody } from '../jobs/background.js';
import type { JobParts } from '../jobs/run-job.js';
import { formatOf, sendJobEvents } from './job-events.js';

/** Background jobs: what was asked with `Prefer: respond-async`. */

type FollowingParts = Pick<JobParts, 'primary' | 'clock'>;

export function getJobs(primary: Primary): AsyncHandler {
  return async (req, res) => {
    const { client, requestId } = res.locals;
    const limit = Number(queryOf(req, 'limit', limitQuery) ?? usualPage);
    const status = queryOf(req, 'status', statusQuery) ?? null;
    const cursor = queryOf(req, 'cursor', cursorQuery);
    const before = cursor === undefined ? null : Number(cursor);
    const { jobs, next } = await primary.call('jobs', { client, status, before, limit });
    const next_cursor = next === null ? null : String(next);
    sendJson(res, { jobs: jobs.map(listed), next_cursor, request_id: requestId } satisfies JobList);
  };
}

export function getJob(primary: Primary): AsyncHandler {
  return async (req, res) => {
    const { client, requestId } = res.locals;
    using caller = untilGone(res);
    const job = await primary.call('job', { id: idOf(req), client });
    if (job.status !== 'succeeded') return sendJson(res, jobBodyOf(job, requestId));
    const written = (answer: CompletedAnswer) => ({
      ...listed(job),
      result: formatOf(job)(answer),
      request_id: requestId,
    });
    const body = await storedBody(primary, job, client, (answer) => JSON.stringify(written(answer)));
    await sendBody(res, body, caller.signal);
  };
}

/** From the beginning, or after the event that the caller has had last. `closing`: this worker is about to exit. */
export function getJobEvents({ primary, clock }: FollowingParts, closing: AbortSignal): AsyncHandler {
  return async (req, res) => {
    const { client } = res.locals;
    const after = lastEventOf(req);
    const job = await primary.call('job', { id: idOf(req), client });
    using out = new EventStream(res, clock);
    const isOpen = job.endedAt === null;
    if (isOpen || req.method === 'HEAD') out.begin(); // nobody knows when the first event comes
    if (req.method === 'HEAD') return out.end();
    using caller = untilGone(res, isOpen ? closing : undefined);
    try {
      await sendJobEvents(primary, job, after, out, client, caller.signal);
    } catch (error) {
      if (error !== workerLeaves || res.writableNeedDrain) throw error;
    }
    if (res.headersSent) out.end();
    else res.status(204).end(); // it has had them all: a browser's EventSource comes again after anything else
  };
}

export function deleteJob(primary: Primary): AsyncHandler {
  return async (req, res) => {
    const { client, requestId } = res.locals;
    const id = idOf(req);
    const { job } = await primary.call('deleteJob', { id, client });
    const fate = { status: job?.status ?? null, deleted: job === null };
    sendJson(res, { success: true, job_id: id, ...fate, request_id: requestId } satisfies DeletedJob);
  };
}

function idOf({ params }: Request): string {
  return String(params.job_id);
}

function lastEventOf(req: Request): number {
  const id = req.get('last-event-id');
  if (id === undefined || id === '') return 0;
  const { success, error } = lastEventId.safeParse(id);
  if (!success) throw invalid('Last-Event-ID', error.issues[0]?.message ?? 'is not valid');
  return Number(id);
}

function jobBodyOf(job: BackgroundJobView, requestId: string): JobBody {
  const error = job.failure && errorBodyOf(fromWire(job.failure), job.requestId);
  return { ...listed(job), ...(error !== null && { error }), request_id: requestId };
}

function listed({ id, operation, status, position, reason, createdAt, startedAt, endedAt }: BackgroundJobView) {
  return {
    job_id: id,
    operation,
    status,
    position,
    reason,
    created_at: timestamp(createdAt),
    started_at: startedAt === null ? null : timestamp(startedAt),
    ended_at: endedAt === null ? null : timestamp(endedAt),
  };
}

import type { AcceptedBody, ListedJob } from '../../shared/api/jobs.js';
import type { AcceptedView, JobForm, JobView } from '../../shared/background.js';
import type { ClientText } from '../../shared/client.js';
import { timestamp } from '../../shared/clock.js';
import { RelayError } from '../../shared/errors.js';
import type { JobDone } from '../../shared/job.js';
import { type AnswerFrame, escaped } from '../../shared/text/answer-frame.js';
import type { SentBody } from '../../worker/http/answer-recorder.js';
import type { Primary, Reply } from '../../worker/http/exchange.js';
import { onceFor, sendRecorded } from '../../worker/http/responses.js';
import { type CompletedAnswer, completed, cutsIn, isWhole } from '../../worker/jobs/answer-format.js';
import { AnswerText, filledBody, frameAround } from '../../worker/jobs/answer-text.js';
import { type AdmittingParts, type RequestedJob, requestOf } from '../../worker/jobs/job-request.js';
import type { OfflineRoutes } from '../../worker/jobs/offline-routes.js';
import type { JobCalls } from './shared.js';

/** Maximum UTF-16 units of a stored answer that stay in memory, because a client may read slowly. */
const maxInMemory = 32 * 1024;

/**
 * Submits a background job to the primary, and answers 202 with the URL of the job. `more`: further fields, in the form
 * of an SDK's API.
 */
export async function acceptJob(
  parts: AdmittingParts,
  res: Reply,
  requested: RequestedJob,
  form: Omit<JobForm, 'isStructured'>,
  more: (accepted: AcceptedView) => object = () => ({}),
): Promise<void> {
  await leaveJob(parts, res, requested, form, async (accepted) => {
    const body: AcceptedBody = {
      job_id: accepted.id,
      status: 'queued',
      created_at: timestamp(accepted.createdAt),
      durable: accepted.isDurable,
      request_id: res.locals.requestId,
    };
    res.set({ 'Preference-Applied': 'respond-async', Location: `/jobs/${accepted.id}` });
    await sendRecorded(res, JSON.stringify({ ...body, ...more(accepted) }), 202);
  });
}

/** Submits a background job to the primary. `send` answers the request. */
export async function leaveJob(
  parts: AdmittingParts,
  res: Reply,
  requested: RequestedJob,
  form: Omit<JobForm, 'isStructured'>,
  send: (accepted: AcceptedView) => Promise<void>,
): Promise<void> {
  const added = parts.features.admitJob({ req: res.req, fields: requested.featureFields ?? {}, isBackground: true });
  const job = await requestOf({ ...requested, stream: true }, parts, res);
  const acceptedForm = { ...form, isStructured: job.schema !== null, ...added };
  await onceFor(res, 'background', async () => {
    await send(await jobCalls(parts.primary).call('accept', { job, form: acceptedForm }));
  });
}

/** Returns the calls about jobs. The channel knows the calls of all features, but its type does not. */
export function jobCalls(primary: Primary | JobCalls): JobCalls {
  return primary as JobCalls;
}

/** Returns the form of a background job's answer. Throws `not_found` if the job is not a background job. */
export function formOf({ form }: JobView): JobForm {
  if (form !== null) return form;
  throw new RelayError('not_found', 'this is not a background job: the request that sent it receives its answer');
}

/** Returns the entry of GET /jobs for one job. */
export function listedJob(job: JobView): ListedJob {
  const { id, title, form, operation, status, position, reason, createdAt, startedAt, endedAt } = job;
  return {
    job_id: id,
    background: form !== null,
    ...(title !== '' && { title }),
    operation,
    status,
    position,
    reason,
    created_at: timestamp(createdAt),
    started_at: startedAt === null ? null : timestamp(startedAt),
    ended_at: endedAt === null ? null : timestamp(endedAt),
    ...cancelledBy(job.isEndedByAdmin),
  };
}

/** Returns who cancelled the job, without the name of the administrator, which clients must not learn. */
export function cancelledBy(isAdmin: boolean): Pick<ListedJob, 'cancelled_by'> {
  return isAdmin ? { cancelled_by: 'administrator' } : {};
}

/** Id of a background job, and the client that requests its answer. */
interface JobKey {
  readonly id: string;
  readonly client: ClientText;
}

/**
 * Returns the response body of a background job that has succeeded. `write` formats the answer. Rejects with
 * `not_found` if the answer has expired.
 */
export async function storedBody(
  primary: Primary | JobCalls,
  job: JobView,
  client: ClientText,
  write: (answer: CompletedAnswer) => string,
): Promise<SentBody> {
  const { text, end } = await storedAnswer(jobCalls(primary), { id: job.id, client });
  return filledBody(text, storedFrame(job, { end, hasText: text.short !== '' }, write));
}

/** Returns the response body of a background job that has succeeded, without its text. `write` formats the answer. */
export function storedFrame(
  job: JobView,
  { end, hasText }: Pick<CompletedAnswer, 'end' | 'hasText'>,
  write: (answer: CompletedAnswer) => string,
): AnswerFrame {
  const { model, tools: forms = {}, isStructured, hasTools = false, hasThoughts = false } = formOf(job);
  const opening = { requestId: job.requestId, model: model ?? '', forms, hasTools, hasThoughts };
  const form = { isStructured: isStructured && isWhole(end), cuts: cutsIn(end) };
  return frameAround(hasText, form, (text, value, slices) =>
    write(completed(opening, { text, value, slices, end, hasText })),
  );
}

async function storedAnswer(
  primary: JobCalls,
  job: JobKey,
): Promise<{ readonly text: SentBody; readonly end: JobDone }> {
  const short = new AnswerText(null);
  for (let from = 0; ; ) {
    const { text, end } = await primary.call('jobAnswer', { ...job, from });
    if (text === '') return { text: short, end };
    await short.addText(text);
    from += text.length;
    if (from <= maxInMemory) continue;
    return { text: { short: null, length: async () => null, pieces: () => storedPieces(primary, job) }, end };
  }
}

async function* storedPieces(primary: JobCalls, job: JobKey): AsyncGenerator<string> {
  for (let from = 0; ; ) {
    const { text } = await primary.call('jobAnswer', { ...job, from });
    if (text === '') return;
    from += text.length;
    yield escaped(text);
  }
}

/** Returns a function that writes the answer of a background job in the form of an SDK's API. */
export function offlineBody(job: JobView, routes: OfflineRoutes): (answer: CompletedAnswer) => object {
  const route = routes[formOf(job).route];
  if (route === undefined) throw new RelayError('not_found', 'this service no longer has the API of the job');
  return route.answerOf(job);
}

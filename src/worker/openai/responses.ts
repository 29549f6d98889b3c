import type { Request } from 'express';
import type { AcceptedView, BackgroundJobView, JobStatus } from '../../shared/background.js';
import { fromWire, invalid, RelayError } from '../../shared/errors.js';
import { subClientByBody } from '../access/authenticate.js';
import { readBody } from '../http/body.js';
import type { AsyncHandler, Primary, Reply } from '../http/exchange.js';
import { publicCodeOf, sendBody, sendJson, untilGone } from '../http/responses.js';
import { acceptJob, storedBody } from '../jobs/background.js';
import { inWordsOf, noteDroppedTools, type ParsedRequest, prefersAsync, setIgnored } from '../jobs/job-request.js';
import { answerWithJob, type CompletedAnswer, type JobParts } from '../jobs/run-job.js';
import { openResponse, responseFormat } from './responses-answer.js';
import { responsesRequest } from './responses-input.js';
import { parseResponses } from './responses-request.js';

export function postResponses(parts: JobParts): AsyncHandler {
  return async (req, res) => {
    const body = await readBody(req, res, parts.bodies, responsesRequest);
    const usesUser = subClientByBody(req, res, body.user ?? undefined);
    const parsed = parseResponses(usesUser ? { ...body, user: undefined } : body);
    const format = responseFormat(Math.floor(parts.clock.now() / 1000));
    const isBackground = body.background === true || prefersAsync(req);
    if (isBackground && body.stream === true)
      throw invalid('stream', 'is not possible with background: follow the job instead');
    if (isBackground) return acceptResponse(parts.primary, res, parsed);
    await answerWithJob(parts, res, parsed, format);
  };
}

/** What an SDK of OpenAI expects is there too. */
async function acceptResponse(primary: Primary, res: Reply, parsed: ParsedRequest): Promise<void> {
  const { model, forms, ignored, job } = parsed;
  setIgnored(res, ignored);
  noteDroppedTools(primary, res, parsed);
  const form = { route: '/v1/responses', model, ...(Object.keys(forms).length > 0 && { tools: forms }) } as const;
  const opening = { forms, hasTools: job.offer !== undefined };
  const accepted = ({ id, createdAt, model: target }: AcceptedView) =>
    openResponse({ requestId: id, model: target ?? model, ...opening }, Math.floor(createdAt / 1000), 'queued');
  await acceptJob(primary, res, parsed.job, form, accepted).catch((error: unknown) => {
    throw inWordsOf(parsed, error);
  });
}

/** Background jobs as an SDK of OpenAI asks for them: a response that was begun with `background`. */

const statusOf = {
  queued: 'queued',
  running: 'in_progress',
  succeeded: 'completed',
  failed: 'failed',
  cancelled: 'cancelled',
} as const satisfies Record<JobStatus, string>;

export function getResponse(primary: Primary): AsyncHandler {
  return async (req, res) => {
    if (req.query.stream === 'true') throw invalid('stream', 'is not possible here: follow the job instead');
    await send(primary, res, await jobOf(primary, req, res));
  };
}

/** One that has ended stays as it is. */
export function cancelResponse(primary: Primary): AsyncHandler {
  return async (req, res) => {
    const { id } = await jobOf(primary, req, res);
    await send(primary, res, await primary.call('cancelJob', { id, client: res.locals.client }));
  };
}

/** What waits or runs is cancelled first. */
export function deleteResponse(primary: Primary): AsyncHandler {
  return async (req, res) => {
    const key = { id: (await jobOf(primary, req, res)).id, client: res.locals.client };
    const { job } = await primary.call('deleteJob', key);
    if (job !== null) await primary.call('deleteJob', key);
    sendJson(res, { id: responseId(req), object: 'response', deleted: true });
  };
}

/** A job of another endpoint is no response. */
async function jobOf(primary: Primary, req: Request, res: Reply): Promise<BackgroundJobView> {
  const [, id] = /^resp_(.+)$/.exec(responseId(req)) ?? [];
  const job =
    id === undefined ? null : await primary.call('job', { id, client: res.locals.client }).catch(unlessMissing);
  if (job?.form.route === '/v1/responses') return job;
  throw new RelayError('not_found', 'no such response');
}

function unlessMissing(error: unknown): null {
  if (error instanceof RelayError && error.code === 'not_found') return null;
  throw error;
}

async function send(primary: Primary, res: Reply, job: BackgroundJobView): Promise<void> {
  if (job.status !== 'succeeded') return sendJson(res, unfinished(job));
  using caller = untilGone(res);
  const bodyOf = endedJob(job.createdAt);
  const body = await storedBody(primary, job, res.locals.client, (answer) => JSON.stringify(bodyOf(answer)));
  await sendBody(res, body, caller.signal);
}

/** The body of a background job that has succeeded, which was accepted at this time. */
export function endedJob(createdAt: number): (answer: CompletedAnswer) => object {
  const form = responseFormat(Math.floor(createdAt / 1000));
  return (answer) => ({ ...form.body(answer), background: true });
}

function unfinished({ id, form, status, createdAt, failure }: BackgroundJobView): object {
  const opening = { requestId: id, model: form.model ?? '', forms: form.tools ?? {}, hasTools: false };
  const response = openResponse(opening, Math.floor(createdAt / 1000), statusOf[status]);
  if (failure === null) return response;
  return { ...response, error: { code: publicCodeOf(fromWire(failure)), message: failure.message } };
}

function responseId({ params }: Request): string {
  return String(params.response_id);
}

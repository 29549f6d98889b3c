import type { Request } from 'express';
import type { BackgroundJobView, JobStatus } from '../../../shared/background.js';
import { fromWire, invalid, RelayError } from '../../../shared/errors.js';
import { KeptAnswer } from '../../background/kept-answer.js';
import { resultOf } from '../../background/result.js';
import { untilGone } from '../../http/disconnect.js';
import type { AsyncHandler, Primary, Reply } from '../../http/exchange.js';
import { publicCodeOf, sendBody, sendJson } from '../../http/send-json.js';
import { openResponse } from './responses-answer.js';

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
    await tell(primary, res, await jobOf(primary, req, res));
  };
}

/** One that has ended stays as it is. */
export function cancelResponse(primary: Primary): AsyncHandler {
  return async (req, res) => {
    const { id } = await jobOf(primary, req, res);
    await tell(primary, res, await primary.call('cancelJob', { id, client: res.locals.client }));
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

async function tell(primary: Primary, res: Reply, job: BackgroundJobView): Promise<void> {
  if (job.status !== 'succeeded') return sendJson(res, unfinished(job));
  using caller = untilGone(res);
  const answer = await KeptAnswer.open(primary, { id: job.id, client: res.locals.client });
  const body = answer.written(job.form.isStructured, (told) => JSON.stringify(resultOf(job, told)));
  await sendBody(res, body, caller.signal);
}

function unfinished({ id, form, status, createdAt, failure }: BackgroundJobView): object {
  const opening = { requestId: id, model: form.model ?? '', tool: form.tool };
  const response = openResponse(opening, Math.floor(createdAt / 1000), statusOf[status]);
  if (failure === null) return response;
  return { ...response, error: { code: publicCodeOf(fromWire(failure)), message: failure.message } };
}

function responseId({ params }: Request): string {
  return String(params.response_id);
}

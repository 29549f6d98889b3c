import type { Request } from 'express';
import type { AcceptedView, JobStatus, JobView } from '../../shared/background.js';
import { fromWire, invalid, RelayError } from '../../shared/errors.js';
import type { Message } from '../../shared/job.js';
import { subClientByBody } from '../access/authenticate.js';
import { readBody } from '../http/body.js';
import type { AsyncHandler, Primary, Reply } from '../http/exchange.js';
import { publicCodeOf, sendBody, sendJson, untilGone } from '../http/responses.js';
import { acceptJob, formOf, storedBody } from '../jobs/background.js';
import { inWordsOf, noteDroppedTools, type ParsedRequest, prefersAsync, setIgnored } from '../jobs/job-request.js';
import { answerWithJob, type CompletedAnswer, type JobParts, type UnsentAnswer } from '../jobs/run-job.js';
import { openResponse, responseFormat } from './responses-answer.js';
import { type InputItem, type ResponsesRequest, responsesRequest } from './responses-input.js';
import { parseResponses } from './responses-request.js';

export function postResponses(parts: JobParts): AsyncHandler {
  return async (req, res) => {
    const body = await readBody(req, res, parts.bodies, responsesRequest);
    const usesUser = subClientByBody(req, res, body.user ?? undefined);
    const own = await withReferences(usesUser ? { ...body, user: undefined } : body, parts.primary, res);
    const earlier = await earlierText(own, parts.primary, res);
    const parsed = parseResponses(own, earlier);
    const place = { store: body.store !== false, previous_response_id: body.previous_response_id ?? null };
    const format = responseFormat(Math.floor(parts.clock.now() / 1000), () => place);
    const isBackground = body.background === true || prefersAsync(req);
    if (isBackground && body.stream === true)
      throw invalid('stream', 'is not possible with background: follow the job instead');
    if (isBackground) return acceptResponse(parts.primary, res, parsed);
    const store = (answer: UnsentAnswer) => storeResponse(parts.primary, res, parsed.added, place, answer);
    await answerWithJob(parts, res, parsed, format, place.store ? store : undefined);
  };
}

const storedId = /^resp_(.+)$/;

/** The text that the request goes on with. Rejects with `not_found`. */
async function earlierText(
  { previous_response_id: previous }: ResponsesRequest,
  primary: Primary,
  res: Reply,
): Promise<readonly Message[]> {
  if (previous == null) return [];
  const id = storedId.exec(previous)?.[1] ?? '';
  const { messages } = await primary.call('responseText', { id, client: res.locals.client });
  return messages;
}

/** Of an item of an answer: its kind, and the response that it belongs to. */
const itemId = /^(?:msg|fc|rs)_([\da-f-]{36})(?:_\d+)?$/;

/** The request with the stored items that it refers to. Throws `validation_error`, and rejects with `not_found`. */
async function withReferences(body: ResponsesRequest, primary: Primary, res: Reply): Promise<ResponsesRequest> {
  const { input } = body;
  if (typeof input === 'string' || !input.some(isReference)) return body;
  const items: InputItem[] = [];
  for (const [index, item] of input.entries()) {
    items.push(isReference(item) ? await referredItem(item, `input.${index}.id`, primary, res) : item);
  }
  return { ...body, input: items };
}

function isReference({ type }: InputItem): boolean {
  return type === 'item_reference';
}

async function referredItem({ id }: InputItem, path: string, primary: Primary, res: Reply): Promise<InputItem> {
  const response = itemId.exec(String(id))?.[1];
  if (response === undefined) throw invalid(path, 'must be the id of an item of a stored response');
  const { body } = await primary.call('response', { id: response, client: res.locals.client });
  const { output } = JSON.parse(body) as { readonly output: readonly InputItem[] };
  const item = output.find((each) => each.id === id);
  if (item === undefined) throw invalid(path, 'must be the id of an item of a stored response');
  return item;
}

/** An answer is paid for: where it can't be stored, it is sent all the same, and says so. */
async function storeResponse(
  primary: Primary,
  res: Reply,
  added: readonly Message[],
  place: { store: boolean; readonly previous_response_id: string | null },
  answer: UnsentAnswer,
): Promise<void> {
  const { requestId: id, client } = res.locals;
  const previous = storedId.exec(place.previous_response_id ?? '')?.[1] ?? null;
  const messages = [...added, await answer.message()];
  const response = { id, previous, messages, body: await answer.body() };
  await primary.call('storeResponse', { client, response }).catch(() => {
    place.store = false;
  });
}

/** What an SDK of OpenAI expects is there too. */
async function acceptResponse(primary: Primary, res: Reply, parsed: ParsedRequest): Promise<void> {
  const { model, forms, ignored, job } = parsed;
  setIgnored(res, ignored);
  noteDroppedTools(primary, res, parsed);
  const form = { route: '/v1/responses', model, ...(Object.keys(forms).length > 0 && { tools: forms }) } as const;
  const opening = { forms, hasTools: job.offer !== undefined, hasThoughts: job.thinking !== undefined };
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
    const job = await backgroundJob(primary, req, res);
    if (job !== null) return send(primary, res, job);
    const { body } = await primary.call('response', ownId(req, res));
    res.set('content-type', 'application/json; charset=utf-8').end(body);
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
    const key = ownId(req, res);
    if ((await backgroundJob(primary, req, res)) === null) await primary.call('deleteResponse', key);
    else {
      const order = { ...key, isAdmin: false, keepsEnded: false };
      const { status } = await primary.call('deleteJob', order);
      if (status !== null) await primary.call('deleteJob', order);
    }
    sendJson(res, { id: responseId(req), object: 'response', deleted: true });
  };
}

async function jobOf(primary: Primary, req: Request, res: Reply): Promise<JobView> {
  const job = await backgroundJob(primary, req, res);
  if (job !== null) return job;
  throw new RelayError('not_found', 'no such response');
}

/** A job of another endpoint is no response; null too for a response that was stored when it was sent. */
async function backgroundJob(primary: Primary, req: Request, res: Reply): Promise<JobView | null> {
  const job = await primary.call('job', ownId(req, res)).catch(unlessMissing);
  return job?.form?.route === '/v1/responses' ? job : null;
}

function ownId(req: Request, res: Reply) {
  const id = storedId.exec(responseId(req))?.[1];
  if (id === undefined) throw new RelayError('not_found', 'no such response');
  return { id, client: res.locals.client };
}

function unlessMissing(error: unknown): null {
  if (error instanceof RelayError && error.code === 'not_found') return null;
  throw error;
}

async function send(primary: Primary, res: Reply, job: JobView): Promise<void> {
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

function unfinished(job: JobView): object {
  const [form, { id, status, createdAt, failure }] = [formOf(job), job];
  const opening = {
    requestId: id,
    model: form.model ?? '',
    forms: form.tools ?? {},
    hasTools: false,
    hasThoughts: false,
  };
  const response = openResponse(opening, Math.floor(createdAt / 1000), statusOf[status]);
  if (failure === null) return response;
  return { ...response, error: { code: publicCodeOf(fromWire(failure)), message: failure.message } };
}

function responseId({ params }: Request): string {
  return String(params.response_id);
}

import type { Request } from 'express';
import { inLines } from '../../shared/async.js';
import type { AcceptedView, JobStatus, JobView } from '../../shared/background.js';
import { fromWire, invalid, RelayError } from '../../shared/errors.js';
import type { AnswerOf, RequestOf } from '../../shared/ipc/peer.js';
import type { PrimaryCalls } from '../../shared/ipc/protocol.js';
import type { ContinuedText, JobRequest, Message } from '../../shared/job.js';
import { chained, chainStart } from '../../shared/text/chain.js';
import { bytesOfMessages, haveImages, messagesBefore } from '../../shared/text/turns.js';
import { subClientByBody } from '../access/authenticate.js';
import { checkJsonTexts, readBody } from '../http/body.js';
import type { AsyncHandler, Primary, Reply } from '../http/exchange.js';
import { jsonType, publicCodeOf, sendBody, sendJson, untilGone, write } from '../http/responses.js';
import type { CompletedAnswer } from '../jobs/answer-format.js';
import { acceptJob, formOf, storedBody } from '../jobs/background.js';
import { inWordsOf, noteDroppedTools, type ParsedRequest, prefersAsync, setIgnored } from '../jobs/job-request.js';
import { answerWithJob, type JobParts, type UnsentAnswer } from '../jobs/run-job.js';
import { callInput } from '../jobs/tool-offer.js';
import { sendInputItems } from './input-items.js';
import { frameOf, openResponse, type ResponseFrame, responseFormat } from './responses-answer.js';
import { type InputItem, type ResponsesRequest, responsesRequest } from './responses-input.js';
import { maxStoredLength, type Repeated, repeatedOf } from './responses-repeated.js';
import { parseResponses } from './responses-request.js';

export function postResponses(parts: JobParts): AsyncHandler {
  const read = bodyReader(parts.primary);
  return async (req, res) => {
    const body = await readBody(req, res, parts.bodies, responsesRequest);
    const usesUser = subClientByBody(req, res, body.user ?? undefined);
    const resolved = await withReferences(
      usesUser ? { ...body, user: undefined } : body,
      res,
      parts.bodies.limitBytes,
      read,
    );
    const parsed = parseResponses(resolved, await continuedBy(resolved, parts.primary, res));
    const place = { store: body.store !== false, previous_response_id: body.previous_response_id ?? null };
    const now = () => secondsOf(parts.clock.now());
    let endedAt: number | null = null;
    const completedAt = () => {
      endedAt ??= now(); // the stored response and the sent one have the same time
      return endedAt;
    };
    const frame = frameOf(now(), { repeated: repeatedOf(resolved), completedAt, place: () => place });
    const isBackground = body.background === true || prefersAsync(req);
    if (isBackground && body.stream === true)
      throw invalid('stream', 'is not supported with background; read GET /jobs/{job_id}/events instead');
    if (isBackground) return acceptResponse(parts.primary, res, parsed, repeatedOf(resolved, maxStoredLength));
    const store = (answer: UnsentAnswer, request: JobRequest) =>
      storeResponse(parts.primary, res, request, place, answer);
    await answerWithJob(parts, res, parsed, responseFormat(frame), place.store ? store : undefined);
  };
}

function secondsOf(ms: number): number {
  return Math.floor(ms / 1000);
}

const storedId = /^resp_(.+)$/;

/** Returns the stored response that the request continues, or null. Rejects with `not_found`. */
async function continuedBy(
  { previous_response_id: previous }: ResponsesRequest,
  primary: Primary,
  res: Reply,
): Promise<ContinuedText | null> {
  if (previous == null) return null;
  const id = storedId.exec(previous)?.[1] ?? '';
  return primary.call('continuedText', { id, client: res.locals.client });
}

type BodyReader = (
  key: RequestOf<PrimaryCalls, 'continuedText'>,
) => AsyncGenerator<AnswerOf<PrimaryCalls, 'responsePiece'>>;

/** Reads the bodies of stored responses in pieces. For each client, the primary sends one piece at a time. */
function bodyReader(primary: Primary): BodyReader {
  const inLineOf = inLines();
  return async function* (key) {
    for (let from = 0; ; ) {
      const piece = await inLineOf(key.client, () => primary.call('responsePiece', { ...key, from }));
      yield piece;
      from += Buffer.byteLength(piece.text);
      if (piece.text === '' || from >= piece.bytes) return;
    }
  };
}

/** Id of an answer's item, which has the kind of the item and the id of the response. */
const itemId = /^(?:msg|fc|rs)_([\da-f-]{36})(?:_\d+)?$/;

/**
 * Replaces references to stored items by the items. Each response is read once. The bytes that are read, and the
 * resulting body, must each fit into the body limit. Throws `validation_error` and `payload_too_large`, and rejects
 * with `not_found`.
 */
async function withReferences(
  body: ResponsesRequest,
  res: Reply,
  limitBytes: number,
  read: BodyReader,
): Promise<ResponsesRequest> {
  const { input } = body;
  if (typeof input === 'string' || !input.some(isReference)) return body;
  const references = new References(res, limitBytes, read);
  const items: InputItem[] = [];
  for (const [index, item] of input.entries()) {
    items.push(isReference(item) ? await references.item(item, `input.${index}.id`) : item);
  }
  return { ...body, input: items };
}

function isReference({ type }: InputItem): boolean {
  return type === 'item_reference';
}

interface ReferredItem {
  readonly item: InputItem;
  readonly bytes: number;
}

/** Owns the stored items that one request refers to, and counts their bytes. */
class References {
  readonly #res: Reply;
  readonly #limitBytes: number;
  readonly #read: BodyReader;
  readonly #items = new Map<unknown, ReferredItem>();
  readonly #responses = new Set<string>();
  #readBytes = 0;
  #bodyBytes: number;

  constructor(res: Reply, limitBytes: number, read: BodyReader) {
    this.#res = res;
    this.#limitBytes = limitBytes;
    this.#read = read;
    this.#bodyBytes = res.locals.structure?.bytes ?? 0;
  }

  async item({ id }: InputItem, path: string): Promise<InputItem> {
    const response = itemId.exec(String(id))?.[1];
    if (response !== undefined && !this.#responses.has(response)) await this.#add(response);
    const referred = this.#items.get(id);
    if (referred === undefined) throw invalid(path, 'must be the id of an item of a stored response');
    this.#bodyBytes += referred.bytes;
    this.#check(this.#bodyBytes);
    checkJsonTexts(this.#res, referred.item, path);
    return referred.item;
  }

  async #add(id: string): Promise<void> {
    this.#responses.add(id);
    const pieces: string[] = [];
    for await (const { text, bytes } of this.#read({ id, client: this.#res.locals.client })) {
      if (pieces.length === 0) this.#readBytes += bytes;
      this.#check(this.#readBytes);
      pieces.push(text);
    }
    const { output } = JSON.parse(pieces.join('')) as { readonly output: readonly InputItem[] };
    for (const item of output) this.#items.set(item.id, { item, bytes: Buffer.byteLength(JSON.stringify(item)) });
  }

  #check(bytes: number): void {
    if (bytes <= this.#limitBytes) return;
    const message = `the body is larger than ${this.#limitBytes} bytes including the items that it references (MODEL_API_BODY_LIMIT)`;
    throw new RelayError('payload_too_large', message);
  }
}

/** Stores the response. If that fails, the answer is sent with `store: false`, because it is already paid for. */
async function storeResponse(
  primary: Primary,
  res: Reply,
  request: JobRequest,
  place: { store: boolean; readonly previous_response_id: string | null },
  answer: UnsentAnswer,
): Promise<void> {
  const { requestId: id, client } = res.locals;
  const previous = storedId.exec(place.previous_response_id ?? '')?.[1] ?? null;
  const { text, images, results, history, earlier, chain } = request;
  const question: Message = { role: 'user', text, ...(images.length > 0 && { images }), ...(results && { results }) };
  const reply = await answer.message();
  const calls = reply.calls?.map((call) => ({ ...call, input: callInput(call.input) }));
  const messages = [...history, question, { ...reply, ...(calls && { calls }) }];
  const head: ContinuedText = {
    id,
    start: chainStart(request.system, request.schema, request.offer?.tools),
    hash: chained(chain?.asked ?? '', reply),
    messageCount: messagesBefore(request) + 2,
    bytes: (earlier?.bytes ?? 0) + bytesOfMessages(messages),
    hasImages: earlier?.hasImages === true || haveImages(messages),
    openCalls: (reply.calls ?? []).map((call) => ({ ...call, input: '' })),
  };
  const response = { id, previous, messages, head, body: await answer.body() };
  await primary.call('storeResponse', { client, response }).catch(() => {
    place.store = false;
  });
}

/** Submits a background job, and answers with the fields that an OpenAI SDK expects. */
async function acceptResponse(primary: Primary, res: Reply, parsed: ParsedRequest, repeated: Repeated): Promise<void> {
  const { model, forms, ignored, job } = parsed;
  setIgnored(res, ignored);
  noteDroppedTools(primary, res, parsed);
  const tools = Object.keys(forms).length > 0 && { tools: forms };
  const form = { route: '/v1/responses', model, ...tools, repeated } as const;
  const opening = { forms, hasTools: job.offer !== undefined, hasThoughts: job.thinking !== undefined };
  const accepted = ({ id, createdAt, model: target }: AcceptedView) =>
    openResponse(
      { requestId: id, model: target ?? model, ...opening },
      frameOf(secondsOf(createdAt), { repeated }),
      'queued',
    );
  await acceptJob(primary, res, parsed.job, form, accepted).catch((error: unknown) => {
    throw inWordsOf(parsed, error);
  });
}

/** Routes for responses that were requested with `background` or stored. */

const statusOf = {
  queued: 'queued',
  running: 'in_progress',
  succeeded: 'completed',
  failed: 'failed',
  cancelled: 'cancelled',
} as const satisfies Record<JobStatus, string>;

export function getResponse(primary: Primary): AsyncHandler {
  const read = bodyReader(primary);
  return async (req, res) => {
    if (req.query.stream === 'true')
      throw invalid('stream', 'is not supported here; read GET /jobs/{job_id}/events instead');
    const job = await backgroundJob(primary, req, res);
    if (job !== null) return send(primary, res, job);
    using caller = untilGone(res);
    for await (const { text, bytes } of read(ownId(req, res))) {
      if (!res.headersSent) res.writeHead(200, { 'Content-Type': jsonType, 'Content-Length': bytes });
      if (req.method === 'HEAD') break;
      await write(res, text, caller.signal);
    }
    res.end();
  };
}

/** Sends the input of a response. The input of a background job is not stored. */
export function getResponseInput(parts: Pick<JobParts, 'primary' | 'spill'>): AsyncHandler {
  return async (req, res) => {
    const { id } = ownId(req, res);
    if ((await backgroundJob(parts.primary, req, res)) !== null)
      throw new RelayError('not_found', 'the input of a background response is not stored');
    await sendInputItems(parts, req, res, id);
  };
}

/** Cancels a background job; does nothing if the job has ended. */
export function cancelResponse(primary: Primary): AsyncHandler {
  return async (req, res) => {
    const { id } = await jobOf(primary, req, res);
    await send(primary, res, await primary.call('cancelJob', { id, client: res.locals.client }));
  };
}

/** Deletes a response. An unfinished background job is cancelled first. */
export function deleteResponse(primary: Primary): AsyncHandler {
  return async (req, res) => {
    const key = ownId(req, res);
    if ((await backgroundJob(primary, req, res)) === null) await primary.call('deleteResponse', key);
    else {
      const order = { ...key, isAdmin: false, keepsEnded: false, requestId: res.locals.requestId };
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

/**
 * Returns the background job of a response, or null if the response was stored without one or the job belongs to
 * another endpoint.
 */
async function backgroundJob(primary: Primary, req: Request, res: Reply): Promise<JobView | null> {
  const job = await primary.call('job', ownId(req, res)).catch(nullIfMissing);
  return job?.form?.route === '/v1/responses' ? job : null;
}

function ownId(req: Request, res: Reply) {
  const id = storedId.exec(responseId(req))?.[1];
  if (id === undefined) throw new RelayError('not_found', 'no such response');
  return { id, client: res.locals.client };
}

function nullIfMissing(error: unknown): null {
  if (error instanceof RelayError && error.code === 'not_found') return null;
  throw error;
}

async function send(primary: Primary, res: Reply, job: JobView): Promise<void> {
  if (job.status !== 'succeeded') return sendJson(res, unfinished(job));
  using caller = untilGone(res);
  const bodyOf = endedJob(job);
  const body = await storedBody(primary, job, res.locals.client, (answer) => JSON.stringify(bodyOf(answer)));
  await sendBody(res, body, caller.signal);
}

/** Returns a function that writes the body of a background job that has succeeded. */
export function endedJob(job: JobView): (answer: CompletedAnswer) => object {
  const form = responseFormat(frameOfJob(job));
  return (answer) => ({ ...form.body(answer), background: true });
}

function frameOfJob({ form, createdAt, endedAt }: JobView): ResponseFrame {
  // Jobs of earlier versions were stored without the repeated fields.
  const repeated = (form?.repeated as Repeated | undefined) ?? repeatedOf({});
  return frameOf(secondsOf(createdAt), { repeated, completedAt: () => secondsOf(endedAt ?? createdAt) });
}

function unfinished(job: JobView): object {
  const [form, { id, status, failure }] = [formOf(job), job];
  const opening = {
    requestId: id,
    model: form.model ?? '',
    forms: form.tools ?? {},
    hasTools: false,
    hasThoughts: false,
  };
  const response = openResponse(opening, frameOfJob(job), statusOf[status]);
  if (failure === null) return response;
  return { ...response, error: { code: publicCodeOf(fromWire(failure)), message: failure.message } };
}

function responseId({ params }: Request): string {
  return String(params.response_id);
}

import type { Request } from 'express';
import { inLines } from '../../shared/async.js';
import type { AcceptedView, JobView } from '../../shared/background.js';
import { holderOf } from '../../shared/client.js';
import { yieldToEventLoop } from '../../shared/clock.js';
import { invalid, RelayError, storingIsOff } from '../../shared/errors.js';
import type { AnswerOf, RequestOf } from '../../shared/ipc/peer.js';
import type { AddedMessage, ContinuedText, JobRequest, Message } from '../../shared/job.js';
import { chainedInSlices, chainStartInSlices } from '../../shared/text/chain.js';
import { inTurns, messagesBefore, splitAnswer } from '../../shared/text/turns.js';
import { checkJsonTexts, queryOf } from '../../worker/http/body.js';
import type { AsyncHandler, Handler, Primary, Reply } from '../../worker/http/exchange.js';
import { answerRefusal, refusals } from '../../worker/http/refusal.js';
import { jsonType, sendBody, sendJson, untilGone, write } from '../../worker/http/responses.js';
import {
  type AdmittingParts,
  inWordsOf,
  noteDroppedTools,
  type ParsedRequest,
  setIgnored,
  setIgnoredQuery,
} from '../../worker/jobs/job-request.js';
import { answerWithJob, type JobParts, type UnsentAnswer } from '../../worker/jobs/run-job.js';
import { acceptJob, jobCalls, leaveJob, storedBody } from '../background/answers.js';
import { prefersAsync } from '../background/preference.js';
import { readSdkBody } from '../doors/sdk-request.js';
import { callInput } from '../doors/tool-offer.js';
import { bodyWithUser } from './content.js';
import { responsesBody } from './foreign-responses.js';
import { sendInputItems } from './input-items.js';
import { bytesOfMessages, haveImages } from './message-sizes.js';
import { frameOf, openResponse, responseFormat } from './responses-answer.js';
import {
  endedJob,
  type ResponseStreamParts,
  secondsOf,
  startingAfterQuery,
  streamQuery,
  streamResponse,
  unfinished,
} from './responses-background.js';
import { type InputItem, type ResponsesRequest, responseFiles } from './responses-input.js';
import { maxStoredLength, type Repeated, repeatedOf } from './responses-repeated.js';
import { parseResponses } from './responses-request.js';
import { type calls, responseCalls } from './shared.js';

export function postResponses(parts: JobParts & ResponseStreamParts): AsyncHandler {
  const read = bodyReader(parts.primary);
  return async (req, res) => {
    const body = await readSdkBody(req, res, parts, bodyWithUser(responsesBody, responseFiles));
    const resolved = await withReferences(body, res, parts.bodies.limitBytes, read);
    const parsed = parseResponses(resolved, await continuedBy(resolved, parts.primary, res));
    await checkStored(body, parts.primary, res);
    const place = {
      store: body.store !== false,
      previous_response_id: body.previous_response_id ?? null,
    };
    const now = () => secondsOf(parts.clock.now());
    let endedAt: number | null = null;
    const completedAt = () => {
      endedAt ??= now(); // the stored response and the sent one have the same time
      return endedAt;
    };
    const frame = frameOf(now(), { repeated: repeatedOf(resolved), completedAt, place: () => place });
    const isBackground = body.background === true || prefersAsync(req);
    if (isBackground) return acceptResponse(parts, res, parsed, repeatedOf(resolved, maxStoredLength));
    const store = (answer: UnsentAnswer, request: JobRequest) =>
      storeResponse(parts.primary, res, request, place, answer);
    await answerWithJob(parts, res, parsed, responseFormat(frame), place.store ? store : undefined);
  };
}

/** Rejects with `forbidden` if the request demands that its response is stored, and it may not be stored. */
async function checkStored({ store, background }: ResponsesRequest, primary: Primary, res: Reply): Promise<void> {
  if (store !== true || background === true) return;
  const { mayStore } = await primary.call('mayStore', { client: res.locals.client });
  if (!mayStore) throw storingIsOff('responses with store: true');
}

/** Refuses a WebSocket with 426, after which codex sends its requests over HTTP. */
export const refuseWebSocket: Handler = (req, res, next) => {
  const isWebSocket = req.method === 'GET' && /\bwebsocket\b/i.test(req.headers.upgrade ?? '');
  if (isWebSocket) answerRefusal(res, refusals.webSocket);
  else next();
};

/** Unsupported calls whose paths look like that of a stored response, with the alternative. */
const unsupported: ReadonlyMap<string, string> = new Map([
  ['compact', 'does not compact a conversation: its client can send less of the history'],
  ['input_tokens', 'does not count the tokens of a response: POST /v1/messages/count_tokens counts those of a message'],
]);

export const refuseUnsupportedCall: Handler = ({ method, params }, _res, next) => {
  const problem = method === 'POST' ? unsupported.get(String(params.response_id)) : undefined;
  if (problem !== undefined) throw new RelayError('not_found', `this service ${problem}`);
  next();
};

const storedId = /^resp_(.+)$/;

/** Returns the stored response that the request continues, or null. Rejects with `not_found`, which names the field. */
async function continuedBy(
  { previous_response_id: previous }: ResponsesRequest,
  primary: Primary,
  res: Reply,
): Promise<ContinuedText | null> {
  if (previous == null) return null;
  const id = storedId.exec(previous)?.[1] ?? '';
  return responseCalls(primary)
    .call('continuedText', { id, client: res.locals.client })
    .catch((error: unknown) => {
      throw isMissing(error) ? previousMissing() : error;
    });
}

/** Returns the error by which clients know that they must send the whole conversation. */
function previousMissing(): RelayError {
  const message = 'no such response: send the whole conversation as input';
  return new RelayError('not_found', `previous_response_id: ${message}`, {
    reason: 'previous_response_not_found',
    details: [{ path: 'previous_response_id', message }],
  });
}

type BodyReader = (
  key: RequestOf<typeof calls, 'continuedText'>,
) => AsyncGenerator<AnswerOf<typeof calls, 'responsePiece'>>;

/** Reads the bodies of stored responses in pieces. For each key holder, the primary sends one piece at a time. */
function bodyReader(primary: Primary): BodyReader {
  const inLineOf = inLines();
  return async function* (key) {
    for (let from = 0; ; ) {
      const piece = await inLineOf(holderOf(key.client), () =>
        responseCalls(primary).call('responsePiece', { ...key, from }),
      );
      yield piece;
      from += Buffer.byteLength(piece.text);
      if (piece.text === '' || from >= piece.bytes) return;
    }
  };
}

/** Id of an answer's item, which has the kind of the item and the id of the response. */
const itemId = /^(?:msg|fc|rs)_([\da-f-]{36})(?:_\d+)?$/;

/** Items that are resolved in one turn of the event loop. */
const itemsAtOnce = 1000;

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
    if (index % itemsAtOnce === itemsAtOnce - 1) await yieldToEventLoop();
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

/** Stores the response. If that fails or nothing may be stored, the answer is sent with `store: false`, because it is already paid for. */
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
  const whole = { ...reply, ...(calls && { calls }) };
  const { additions } = answer;
  const turn = additions.length === 0 ? [question, whole] : inTurns([question, ...splitAnswer(whole, additions)]);
  const messages = [...history, ...turn];
  const head: ContinuedText = {
    id,
    start: await chainStartInSlices(request.system, request.schema, request.offer?.tools, request.search !== undefined),
    hash: await hashOf(chain?.asked ?? '', reply, additions),
    messageCount: messagesBefore(request) + turn.length,
    bytes: (earlier?.bytes ?? 0) + bytesOfMessages(messages),
    hasImages: earlier?.hasImages === true || haveImages(messages),
    openCalls: (reply.calls ?? []).map((call) => ({ ...call, input: '' })),
  };
  const response = { id, previous, messages, head, body: await answer.body() };
  await responseCalls(primary)
    .call('storeResponse', { client, response })
    .catch(() => {
      place.store = false;
    });
}

/** Returns the end of the chain. With added messages, no process has exactly these turns, but the chain differs from others. */
function hashOf(chain: string, reply: Message, additions: readonly AddedMessage[]): Promise<string> {
  const added = additions.map(({ text }): Message => ({ role: 'user', text }));
  return chainedInSlices(chain, [...added, reply]);
}

/** Submits a background job, and answers with the fields that an OpenAI SDK expects, or with the events of the job. */
async function acceptResponse(
  parts: ResponseStreamParts & AdmittingParts,
  res: Reply,
  parsed: ParsedRequest,
  repeated: Repeated,
): Promise<void> {
  const { primary } = parts;
  const { model, forms, ignored, job } = parsed;
  if (job.stream && res.locals.recorder !== null)
    throw invalid('stream', 'is not supported with background and an Idempotency-Key; omit one of them');
  setIgnored(res, ignored);
  noteDroppedTools(primary, res, parsed);
  const tools = Object.keys(forms).length > 0 && { tools: forms };
  const hasTools = job.offer !== undefined || job.search !== undefined;
  const opening = { forms, hasTools, hasThoughts: job.thinking !== undefined };
  const items = { hasTools: opening.hasTools, hasThoughts: opening.hasThoughts };
  const form = { route: '/v1/responses', model, ...tools, ...items, repeated } as const;
  const accepted = ({ id, createdAt, model: target }: AcceptedView) =>
    openResponse(
      { requestId: id, model: target ?? model, ...opening },
      frameOf(secondsOf(createdAt), { repeated }),
      'queued',
    );
  const answered = job.stream
    ? leaveJob(parts, res, job, { ...form, isFollowed: true }, ({ id }) => streamAccepted(parts, res, id))
    : acceptJob(parts, res, job, form, accepted);
  await answered.catch((error: unknown) => {
    throw inWordsOf(parsed, error);
  });
}

async function streamAccepted(parts: ResponseStreamParts, res: Reply, id: string): Promise<void> {
  const job = await jobCalls(parts.primary).call('job', { id, client: res.locals.client });
  await streamResponse(parts, res, job, -1);
}

/** Routes for responses that were requested with `background` or stored. */

const knownQuery: ReadonlySet<string> = new Set(['stream', 'starting_after']);

/** Sends a response; with `stream=true`, the events of a background response after the event `starting_after`. */
export function getResponse(parts: ResponseStreamParts): AsyncHandler {
  const { primary } = parts;
  const read = bodyReader(primary);
  return async (req, res) => {
    setIgnoredQuery(req, res, knownQuery);
    const isStreamed = queryOf(req, 'stream', streamQuery) === 'true';
    const after = queryOf(req, 'starting_after', startingAfterQuery);
    if (after !== undefined && !isStreamed) throw invalid('starting_after', 'needs stream=true');
    const job = await backgroundJob(primary, req, res);
    if (isStreamed && job === null) await responseCalls(primary).call('responsePiece', { ...ownId(req, res), from: 0 }); // if there is one
    if (isStreamed) return streamResponse(parts, res, streamable(job), Number(after ?? -1));
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

function streamable(job: JobView | null): JobView {
  if (job === null) throw invalid('stream', 'is supported only for a background response, which this is not');
  if (job.form?.hasTools !== undefined) return job;
  throw invalid('stream', 'is not supported: an earlier version of the service has accepted this response');
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
    await send(primary, res, await jobCalls(primary).call('cancelJob', { id, client: res.locals.client }));
  };
}

/** Deletes a response. An unfinished background job is cancelled first. */
export function deleteResponse(primary: Primary): AsyncHandler {
  return async (req, res) => {
    const key = ownId(req, res);
    if ((await backgroundJob(primary, req, res)) === null) await responseCalls(primary).call('deleteResponse', key);
    else {
      const order = { ...key, isAdmin: false, keepsEnded: false, requestId: res.locals.requestId };
      const { status } = await jobCalls(primary).call('deleteJob', order);
      if (status !== null) await jobCalls(primary).call('deleteJob', order);
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
  const job = await jobCalls(primary).call('job', ownId(req, res)).catch(nullIfMissing);
  return job?.form?.route === '/v1/responses' ? job : null;
}

function ownId(req: Request, res: Reply) {
  const id = storedId.exec(responseId(req))?.[1];
  if (id === undefined) throw new RelayError('not_found', 'no such response');
  return { id, client: res.locals.client };
}

function nullIfMissing(error: unknown): null {
  if (isMissing(error)) return null;
  throw error;
}

function isMissing(error: unknown): boolean {
  return error instanceof RelayError && error.code === 'not_found';
}

async function send(primary: Primary, res: Reply, job: JobView): Promise<void> {
  if (job.status !== 'succeeded') return sendJson(res, unfinished(job));
  using caller = untilGone(res);
  const bodyOf = endedJob(job);
  const body = await storedBody(primary, job, res.locals.client, (answer) => JSON.stringify(bodyOf(answer)));
  await sendBody(res, body, caller.signal);
}

function responseId({ params }: Request): string {
  return String(params.response_id);
}

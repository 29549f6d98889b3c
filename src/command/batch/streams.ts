import { askResult } from '../../shared/api/ask.js';
import { type ErrorBody, errorBody } from '../../shared/api/error.js';
import { cliReasons, publicCodes } from '../../shared/errors.js';
import type { Client } from '../base/client.js';
import { CommandError, exitCodes, ServiceError } from '../base/errors.js';
import type { ServerEvent } from '../base/http.js';

/** Fields of a line with an answer, without its ID. */
export interface Answer {
  readonly response: string;
  readonly structured?: unknown;
  readonly model: string | null;
  readonly usage: object | null;
  readonly request_id: string;
}

/** Fields of a line with a failure, without its ID. */
export interface Failure {
  readonly error: {
    readonly code: string;
    readonly reason?: string;
    readonly message: string;
    readonly request_id?: string;
  };
}

export type PromptEnd = Answer | Failure;

/** Action after a request has failed: give up the prompt, stop the batch, send again, or wait. */
export type NextStep =
  | { readonly type: 'failed' | 'stop' | 'again' }
  /** Pause in seconds; undefined selects a default. `line` delays only this prompt, `all` every prompt. */
  | { readonly type: 'wait'; readonly seconds: number | undefined; readonly holds: 'all' | 'line' };

/** Returns the answer in an event stream of POST /ask. Throws a CommandError. */
export async function answerIn(events: AsyncIterable<ServerEvent>, client: Pick<Client, 'parse'>): Promise<Answer> {
  for await (const { event, data } of events) {
    if (event === 'error') throw new ServiceError(client.parse(data, errorBody));
    if (event !== 'done') continue;
    const { response, structured, model, usage, request_id } = client.parse(data, askResult);
    return { response, ...(structured !== undefined && { structured }), model, usage, request_id };
  }
  throw cutOff();
}

/** Error codes of OpenAI's API that stand for a reason of `cli_error`. */
const reasonsOf: Readonly<Record<string, ErrorBody['reason']>> = {
  insufficient_quota: 'quota',
  context_length_exceeded: 'prompt_too_long',
  model_not_found: 'model_unknown',
};

/** Converts an error of OpenAI's API to the service's native format; null for any other body. */
export function completionError(body: unknown, retryAfterSeconds?: number): ErrorBody | null {
  const { error } = Object(body);
  const { message, code } = Object(error);
  if (typeof message !== 'string') return null;
  const publicCode = publicCodes.find((known) => known === code);
  const reason =
    publicCode === undefined ? (cliReasons.find((known) => known === code) ?? reasonsOf[code] ?? 'other') : null;
  return {
    error: publicCode ?? 'cli_error',
    message,
    request_id: '',
    ...(reason !== null && { reason }),
    ...(retryAfterSeconds !== undefined && { retry_after_seconds: retryAfterSeconds }),
  };
}

/** Returns the answer in an event stream of OpenAI's API. Throws a CommandError. */
export async function completionIn(events: AsyncIterable<ServerEvent>, isJson: boolean): Promise<Answer> {
  const parts: string[] = [];
  let [id, model, finish]: (string | null)[] = ['', null, null];
  let usage: Answer['usage'] = null;
  for await (const { data } of events) {
    if (data === '[DONE]')
      return { ...answerOf(parts.join(''), finish, isJson), model: model ?? null, usage, request_id: id ?? '' };
    const chunk = chunkIn(data);
    const failure = completionError(chunk);
    if (failure !== null) throw new ServiceError(failure);
    const [choice] = [chunk.choices ?? []].flat();
    parts.push(choice?.delta?.content ?? '');
    finish = choice?.finish_reason ?? finish;
    model = chunk.model ?? model;
    id = chunk.id?.replace('chatcmpl-', '') ?? id;
    if (chunk.usage) usage = { input_tokens: chunk.usage.prompt_tokens, output_tokens: chunk.usage.completion_tokens };
  }
  throw cutOff();
}

function cutOff(): CommandError {
  return new CommandError(exitCodes.unavailable, 'the response was cut off before the answer ended');
}

interface Chunk {
  readonly id?: string;
  readonly model?: string;
  readonly choices?: {
    readonly delta?: { readonly content?: string | null };
    readonly finish_reason?: string | null;
  }[];
  readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens: number } | null;
}

function chunkIn(data: string): Chunk {
  try {
    return Object(JSON.parse(data)) as Chunk;
  } catch {
    throw new CommandError(exitCodes.protocol, "the response is not a stream of OpenAI's API");
  }
}

function answerOf(
  response: string,
  finish: string | null | undefined,
  isJson: boolean,
): Pick<Answer, 'response' | 'structured'> {
  if (finish === 'content_filter') {
    const message = response === '' ? 'the model refused to answer' : response;
    throw new ServiceError({ error: 'cli_error', reason: 'refused', message, request_id: '' });
  }
  return isJson ? { response, structured: JSON.parse(response) } : { response };
}

/** Pause in seconds after a failure that an operator must repair, such as a missing login. */
const repairSeconds = 30;

/** Whether the service has recorded this failure, and would replay it for the same Idempotency-Key. */
export function isRecorded(error: CommandError): boolean {
  return error instanceof ServiceError && !refusals.has(error.code) && !ownWaits.has(error.code);
}

export function stepAfter(error: CommandError): NextStep {
  if (!(error instanceof ServiceError)) {
    const isAway = error.exitCode === exitCodes.unavailable || error.exitCode === exitCodes.protocol;
    return isAway ? { type: 'wait', seconds: undefined, holds: 'all' } : { type: 'failed' };
  }
  const { error: code, reason, retry_after_seconds: seconds } = error.body;
  if (code === 'unauthorized' || code === 'forbidden') return { type: 'stop' };
  if (ownWaits.has(code)) return { type: 'wait', seconds, holds: 'line' };
  if (refusals.has(code)) return { type: 'wait', seconds, holds: 'all' };
  if (reason === 'host_lost') return { type: 'again' };
  if (reason === 'overloaded' || reason === 'quota' || (code === 'cli_error' && seconds !== undefined)) {
    return { type: 'wait', seconds, holds: 'all' };
  }
  const needsRepair = code === 'spawn_error' || reason === 'auth';
  return needsRepair ? { type: 'wait', seconds: seconds ?? repairSeconds, holds: 'all' } : { type: 'failed' };
}

const refusals: ReadonlySet<string> = new Set([
  'rate_limited',
  'concurrency_limited',
  'shutting_down',
  'store_unavailable',
]);

/** Refusals that concern one request only. */
const ownWaits: ReadonlySet<string> = new Set(['queue_timeout', 'idempotency_in_progress']);

export function failureOf(error: CommandError): Failure {
  if (!(error instanceof ServiceError)) return { error: { code: 'internal_error', message: error.message } };
  const { error: code, reason, message, request_id: id } = error.body;
  return { error: { code, ...(reason !== undefined && { reason }), message, ...(id !== '' && { request_id: id }) } };
}

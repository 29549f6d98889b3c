import { httpStatusOf, type PublicCode, type RelayError } from '../../shared/errors.js';
import type { ErrorForm } from '../http/exchange.js';
import { publicCodeOf } from '../http/responses.js';
import { isOfUnknownModel } from './message-parts.js';

const request = 'invalid_request_error';
const server = 'server_error';
const rate = 'rate_limit_error';

const typesOf: Readonly<Record<PublicCode, string>> = {
  validation_error: request,
  unauthorized: 'authentication_error',
  forbidden: 'permission_error',
  not_found: request,
  method_not_allowed: request,
  idempotency_in_progress: request,
  payload_too_large: request,
  idempotency_mismatch: request,
  rate_limited: rate,
  concurrency_limited: rate,
  cli_error: server,
  spawn_error: server,
  internal_error: server,
  shutting_down: server,
  store_unavailable: server,
  queue_timeout: server,
  timeout: server,
};

/** Failure of the model CLI that a client can react to. */
const failureKinds = ['overloaded', 'quota', 'prompt_too_long', 'request_refused', 'model_unknown'] as const;
export type FailureKind = (typeof failureKinds)[number];

/** HTTP status and error of OpenAI's API. */
interface SdkError {
  readonly status: number;
  readonly type: string;
  readonly code: string;
}

const byKind: Readonly<Record<FailureKind, SdkError>> = {
  overloaded: { status: 503, type: server, code: 'overloaded' },
  quota: { status: 429, type: 'insufficient_quota', code: 'insufficient_quota' },
  prompt_too_long: { status: 400, type: request, code: 'context_length_exceeded' },
  request_refused: { status: 400, type: request, code: 'request_refused' },
  model_unknown: { status: 404, type: request, code: 'model_not_found' },
};

/** Returns null for an error whose code says enough. */
export function failureKindOf(error: RelayError): FailureKind | null {
  if (error.reason === 'budget') return 'quota';
  if (isOfUnknownModel(error)) return 'model_unknown';
  if (publicCodeOf(error) !== 'cli_error') return null;
  return failureKinds.find((kind) => kind === error.reason) ?? null;
}

function sdkErrorOf(error: RelayError): SdkError {
  const kind = failureKindOf(error);
  if (kind !== null) return byKind[kind];
  const code = publicCodeOf(error);
  return { status: httpStatusOf[code], type: typesOf[code], code: error.reason ?? code };
}

/** Returns the wrong field in OpenAI's notation, or null for the whole body or a header. */
function paramOf({ details }: RelayError): string | null {
  const path = details?.[0]?.path ?? '';
  return /^[a-z]/.test(path) && path !== 'body' ? path.replace(/\.(\d+)(?=\.|$)/g, '[$1]') : null;
}

interface OpenAiErrorBody {
  readonly error: Omit<SdkError, 'status'> & { readonly message: string; readonly param: string | null };
}

function openAiErrorBody(error: RelayError): OpenAiErrorBody {
  const { type, code } = sdkErrorOf(error);
  return { error: { message: sdkMessageOf(error), type, code, param: paramOf(error) } };
}

/** Returns the error that ends a stream. */
export function openAiStreamError(error: RelayError): OpenAiErrorBody {
  const { error: body } = openAiErrorBody(error);
  return { error: isPaid(error) && body.type === server ? { ...body, type: 'api_error' } : body };
}

/**
 * Whether the model may have been paid. opencode and Continue repeat a request up to ten times if its stream ends with
 * a `server_error`.
 */
function isPaid({ code, reason }: RelayError): boolean {
  return code === 'timeout' || code === 'internal_error' || (code === 'cli_error' && reason !== 'overloaded');
}

/**
 * Returns the error message. Clients such as LangChain recognize by these words, not by the code, that a conversation
 * is too long.
 */
export function sdkMessageOf({ reason, message }: RelayError): string {
  return reason === 'prompt_too_long' ? `the input exceeds the context window of the model: ${message}` : message;
}

/** Returns the HTTP status that most APIs have for an error. */
export function sdkStatusOf(error: RelayError): number {
  return sdkErrorOf(error).status;
}

export const openAiErrors: ErrorForm = (error) => ({ status: sdkStatusOf(error), body: openAiErrorBody(error) });

import { httpStatusOf, type PublicCode, type RelayError } from '../../shared/errors.js';
import type { ErrorForm } from '../http/exchange.js';
import { publicCodeOf } from '../http/responses.js';
import { isOfUnknownModel } from './message-parts.js';

/** Error in the forms of OpenAI's and Anthropic's APIs. */
interface SdkError {
  /** HTTP status, unless `anthropic.status` is set. */
  readonly status: number;
  readonly openAi: { readonly type: string; readonly code: string };
  readonly anthropic: { readonly type: string; readonly status?: number };
}

const request = 'invalid_request_error';
const server = 'server_error';
const rate = 'rate_limit_error';

const typesOf: Readonly<Record<PublicCode, readonly [openAi: string, anthropic: string]>> = {
  validation_error: [request, request],
  unauthorized: ['authentication_error', 'authentication_error'],
  forbidden: ['permission_error', 'permission_error'],
  not_found: [request, 'not_found_error'],
  method_not_allowed: [request, request],
  idempotency_in_progress: [request, request],
  payload_too_large: [request, 'request_too_large'],
  idempotency_mismatch: [request, request],
  rate_limited: [rate, rate],
  concurrency_limited: [rate, rate],
  cli_error: [server, 'api_error'],
  spawn_error: [server, 'api_error'],
  internal_error: [server, 'api_error'],
  shutting_down: [server, 'api_error'],
  store_unavailable: [server, 'api_error'],
  queue_timeout: [server, 'timeout_error'],
  timeout: [server, 'timeout_error'],
};

const unknownModel: SdkError = {
  status: 404,
  openAi: { type: request, code: 'model_not_found' },
  anthropic: { type: 'not_found_error' },
};

/** Errors for failures of the model CLI that a client can react to, by their reason. */
const byReason: Readonly<Record<string, SdkError>> = {
  overloaded: {
    status: 503,
    openAi: { type: server, code: 'overloaded' },
    anthropic: { type: 'overloaded_error', status: 529 },
  },
  quota: {
    status: 429,
    openAi: { type: 'insufficient_quota', code: 'insufficient_quota' },
    anthropic: { type: rate },
  },
  prompt_too_long: {
    status: 400,
    openAi: { type: request, code: 'context_length_exceeded' },
    anthropic: { type: request },
  },
  request_refused: { status: 400, openAi: { type: request, code: 'request_refused' }, anthropic: { type: request } },
  model_unknown: unknownModel,
};

function sdkErrorOf(error: RelayError): SdkError {
  const code = publicCodeOf(error);
  if (error.reason === 'budget' && byReason.quota !== undefined) return byReason.quota;
  if (isOfUnknownModel(error)) return unknownModel;
  const known = code === 'cli_error' ? byReason[error.reason ?? ''] : undefined;
  const [openAi, anthropic] = typesOf[code];
  const status = httpStatusOf[code];
  return known ?? { status, openAi: { type: openAi, code: error.reason ?? code }, anthropic: { type: anthropic } };
}

/** Returns the wrong field in OpenAI's notation, or null for the whole body or a header. */
function paramOf({ details }: RelayError): string | null {
  const path = details?.[0]?.path ?? '';
  return /^[a-z]/.test(path) && path !== 'body' ? path.replace(/\.(\d+)(?=\.|$)/g, '[$1]') : null;
}

interface OpenAiErrorBody {
  readonly error: SdkError['openAi'] & { readonly message: string; readonly param: string | null };
}

function openAiErrorBody(error: RelayError): OpenAiErrorBody {
  const { type, code } = sdkErrorOf(error).openAi;
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

export function anthropicErrorBody(error: RelayError, requestId: string): object {
  const { type } = sdkErrorOf(error).anthropic;
  return { type: 'error', error: { type, message: error.message }, request_id: requestId };
}

export const anthropicErrors: ErrorForm = (error, requestId) => {
  const { status, anthropic } = sdkErrorOf(error);
  return { status: anthropic.status ?? status, body: anthropicErrorBody(error, requestId) };
};

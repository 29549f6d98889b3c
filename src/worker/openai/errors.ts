import { httpStatusOf, type PublicCode, type RelayError } from '../../shared/errors.js';
import type { ErrorForm } from '../http/exchange.js';
import { publicCodeOf } from '../http/responses.js';
import { isOfUnknownModel } from '../jobs/message-parts.js';

interface OpenAiError {
  readonly status: number;
  readonly type: string;
  readonly code: string;
}

const request = 'invalid_request_error';
const server = 'server_error';

const typeOf: Readonly<Record<PublicCode, string>> = {
  validation_error: request,
  unauthorized: 'authentication_error',
  forbidden: 'permission_error',
  not_found: request,
  method_not_allowed: request,
  idempotency_in_progress: request,
  payload_too_large: request,
  idempotency_mismatch: request,
  rate_limited: 'rate_limit_error',
  concurrency_limited: 'rate_limit_error',
  cli_error: server,
  spawn_error: server,
  internal_error: server,
  shutting_down: server,
  store_unavailable: server,
  queue_timeout: server,
  timeout: server,
};

const unknownModel: OpenAiError = { status: 404, type: request, code: 'model_not_found' };

/** Failures of the model CLI that a client can act on. */
const byReason: Readonly<Record<string, OpenAiError>> = {
  overloaded: { status: 503, type: server, code: 'overloaded' },
  quota: { status: 429, type: 'insufficient_quota', code: 'insufficient_quota' },
  prompt_too_long: { status: 400, type: request, code: 'context_length_exceeded' },
  model_unknown: unknownModel,
};

/** What the OpenAI API would say of it. */
function openAiErrorOf(error: RelayError): OpenAiError {
  const code = publicCodeOf(error);
  if (isOfUnknownModel(error)) return unknownModel;
  const known = code === 'cli_error' ? byReason[error.reason ?? ''] : undefined;
  return known ?? { status: httpStatusOf[code], type: typeOf[code], code: error.reason ?? code };
}

/** The field that is wrong, as the OpenAI API names it; null where it is the body as a whole, or a header. */
function paramOf({ details }: RelayError): string | null {
  const path = details?.[0]?.path ?? '';
  return /^[a-z]/.test(path) && path !== 'body' ? path.replace(/\.(\d+)(?=\.|$)/g, '[$1]') : null;
}

interface OpenAiErrorBody {
  readonly error: Pick<OpenAiError, 'type' | 'code'> & { readonly message: string; readonly param: string | null };
}

function openAiErrorBody(error: RelayError): OpenAiErrorBody {
  const { type, code } = openAiErrorOf(error);
  return { error: { message: messageOf(error), type, code, param: paramOf(error) } };
}

/** The end of a stream that fails. */
export function openAiStreamError(error: RelayError): OpenAiErrorBody {
  const { error: body } = openAiErrorBody(error);
  return { error: isPaid(error) && body.type === server ? { ...body, type: 'api_error' } : body };
}

/**
 * Whether a model was asked for it. opencode and Continue repeat a request whose stream ends with a `server_error`, up to
 * ten times.
 */
function isPaid({ code, reason }: RelayError): boolean {
  return code === 'timeout' || code === 'internal_error' || (code === 'cli_error' && reason !== 'overloaded');
}

/** Clients such as LangChain know by these words that a conversation has to be shortened, not by the code. */
function messageOf({ reason, message }: RelayError): string {
  return reason === 'prompt_too_long' ? `the input exceeds the context window of the model: ${message}` : message;
}

export const openAiErrors: ErrorForm = (error) => ({
  status: openAiErrorOf(error).status,
  body: openAiErrorBody(error),
});

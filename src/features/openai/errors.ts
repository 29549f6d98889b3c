import type { PublicCode, RelayError } from '../../shared/errors.js';
import type { ErrorForm } from '../../worker/http/exchange.js';
import { publicCodeOf } from '../../worker/http/responses.js';
import { type FailureKind, failureKindOf, sdkMessageOf, sdkStatusOf } from '../../worker/jobs/sdk-errors.js';

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

/** Type and code of an error. */
interface ErrorName {
  readonly type: string;
  readonly code: string;
}

const byKind: Readonly<Record<FailureKind, ErrorName>> = {
  overloaded: { type: server, code: 'overloaded' },
  quota: { type: 'insufficient_quota', code: 'insufficient_quota' },
  prompt_too_long: { type: request, code: 'context_length_exceeded' },
  request_refused: { type: request, code: 'request_refused' },
  model_unknown: { type: request, code: 'model_not_found' },
};

function errorNameOf(error: RelayError): ErrorName {
  const kind = failureKindOf(error);
  if (kind !== null) return byKind[kind];
  const code = publicCodeOf(error);
  return { type: typesOf[code], code: error.reason ?? code };
}

/** Returns the wrong field in OpenAI's notation, or null for the whole body or a header. */
function paramOf({ details }: RelayError): string | null {
  const path = details?.[0]?.path ?? '';
  return /^[a-z]/.test(path) && path !== 'body' ? path.replace(/\.(\d+)(?=\.|$)/g, '[$1]') : null;
}

interface OpenAiErrorBody {
  readonly error: ErrorName & { readonly message: string; readonly param: string | null };
}

function openAiErrorBody(error: RelayError): OpenAiErrorBody {
  const { type, code } = errorNameOf(error);
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

export const openAiErrors: ErrorForm = (error) => ({ status: sdkStatusOf(error), body: openAiErrorBody(error) });

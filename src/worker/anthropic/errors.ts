import { httpStatusOf, type PublicCode, type RelayError } from '../../shared/errors.js';
import type { ErrorForm } from '../http/exchange.js';
import { publicCodeOf } from '../http/responses.js';
import { isOfUnknownModel } from '../jobs/message-parts.js';

interface AnthropicError {
  readonly status: number;
  readonly type: string;
}

const typeOf: Readonly<Record<PublicCode, string>> = {
  validation_error: 'invalid_request_error',
  unauthorized: 'authentication_error',
  forbidden: 'permission_error',
  not_found: 'not_found_error',
  method_not_allowed: 'invalid_request_error',
  idempotency_in_progress: 'invalid_request_error',
  payload_too_large: 'request_too_large',
  idempotency_mismatch: 'invalid_request_error',
  rate_limited: 'rate_limit_error',
  concurrency_limited: 'rate_limit_error',
  cli_error: 'api_error',
  spawn_error: 'api_error',
  internal_error: 'api_error',
  shutting_down: 'api_error',
  store_unavailable: 'api_error',
  queue_timeout: 'timeout_error',
  timeout: 'timeout_error',
};

const unknownModel: AnthropicError = { status: 404, type: 'not_found_error' };

/** Failures of the model CLI that a client can act on. */
const byReason: Readonly<Record<string, AnthropicError>> = {
  overloaded: { status: 529, type: 'overloaded_error' },
  quota: { status: 429, type: 'rate_limit_error' },
  prompt_too_long: { status: 400, type: 'invalid_request_error' },
  model_unknown: unknownModel,
};

/** What the Anthropic API would say of it. */
function anthropicErrorOf(error: RelayError): AnthropicError {
  const code = publicCodeOf(error);
  if (isOfUnknownModel(error)) return unknownModel;
  const known = code === 'cli_error' ? byReason[error.reason ?? ''] : undefined;
  return known ?? { status: httpStatusOf[code], type: typeOf[code] };
}

export function anthropicErrorBody(error: RelayError, requestId: string): object {
  const { type } = anthropicErrorOf(error);
  return { type: 'error', error: { type, message: error.message }, request_id: requestId };
}

export const anthropicErrors: ErrorForm = (error, requestId) => ({
  status: anthropicErrorOf(error).status,
  body: anthropicErrorBody(error, requestId),
});

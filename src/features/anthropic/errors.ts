import type { PublicCode, RelayError } from '../../shared/errors.js';
import type { ErrorForm } from '../../worker/http/exchange.js';
import { publicCodeOf } from '../../worker/http/responses.js';
import { type FailureKind, failureKindOf, sdkStatusOf } from '../../worker/jobs/sdk-errors.js';

const request = 'invalid_request_error';
const server = 'api_error';
const rate = 'rate_limit_error';

const typesOf: Readonly<Record<PublicCode, string>> = {
  validation_error: request,
  unauthorized: 'authentication_error',
  forbidden: 'permission_error',
  not_found: 'not_found_error',
  method_not_allowed: request,
  idempotency_in_progress: request,
  payload_too_large: 'request_too_large',
  idempotency_mismatch: request,
  rate_limited: rate,
  concurrency_limited: rate,
  cli_error: server,
  spawn_error: server,
  internal_error: server,
  shutting_down: server,
  store_unavailable: server,
  queue_timeout: 'timeout_error',
  timeout: 'timeout_error',
};

const typesOfKinds: Readonly<Record<FailureKind, string>> = {
  overloaded: 'overloaded_error',
  quota: rate,
  prompt_too_long: request,
  request_refused: request,
  model_unknown: 'not_found_error',
};

/** Status that only Anthropic's API has. */
const overloadedStatus = 529;

export function anthropicErrorBody(error: RelayError, requestId: string): object {
  const kind = failureKindOf(error);
  const type = kind === null ? typesOf[publicCodeOf(error)] : typesOfKinds[kind];
  return { type: 'error', error: { type, message: error.message }, request_id: requestId };
}

export const anthropicErrors: ErrorForm = (error, requestId) => ({
  status: failureKindOf(error) === 'overloaded' ? overloadedStatus : sdkStatusOf(error),
  body: anthropicErrorBody(error, requestId),
});

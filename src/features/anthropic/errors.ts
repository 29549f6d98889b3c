import type { RelayError } from '../../shared/errors.js';
import type { ErrorKind } from '../../shared/tables/errors.js';
import type { ErrorForm } from '../../worker/http/exchange.js';
import { sdkErrorOf } from '../doors/sdk-errors.js';

const types: Readonly<Record<ErrorKind, string>> = {
  request: 'invalid_request_error',
  authentication: 'authentication_error',
  permission: 'permission_error',
  not_found: 'not_found_error',
  too_large: 'request_too_large',
  rate: 'rate_limit_error',
  quota: 'rate_limit_error',
  overloaded: 'overloaded_error',
  timeout: 'timeout_error',
  server: 'api_error',
};

/** Status that only Anthropic's API has. */
const overloadedStatus = 529;

export function anthropicErrorBody(error: RelayError, requestId: string): object {
  const type = types[sdkErrorOf(error).kind];
  return { type: 'error', error: { type, message: error.message }, request_id: requestId };
}

export const anthropicErrors: ErrorForm = (error, requestId) => {
  const { kind, status } = sdkErrorOf(error);
  return {
    status: kind === 'overloaded' ? overloadedStatus : status,
    body: anthropicErrorBody(error, requestId),
  };
};

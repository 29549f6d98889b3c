import type { RelayError } from '../../shared/errors.js';
import type { ErrorKind } from '../../shared/tables/errors.js';
import type { ErrorForm } from '../../worker/http/exchange.js';
import { sdkErrorOf, sdkMessageOf } from '../doors/sdk-errors.js';

const request = 'invalid_request_error';
const server = 'server_error';

const types: Readonly<Record<ErrorKind, string>> = {
  request,
  authentication: 'authentication_error',
  permission: 'permission_error',
  not_found: request,
  too_large: request,
  rate: 'rate_limit_error',
  quota: 'insufficient_quota',
  overloaded: server,
  timeout: server,
  server,
};

/** Returns the wrong field in OpenAI's notation, or null for the whole body or a header. */
function paramOf({ details }: RelayError): string | null {
  const path = details?.[0]?.path ?? '';
  return /^[a-z]/.test(path) && path !== 'body' ? path.replace(/\.(\d+)(?=\.|$)/g, '[$1]') : null;
}

interface OpenAiErrorBody {
  readonly error: Readonly<Record<'message' | 'type' | 'code', string>> & { readonly param: string | null };
}

function openAiErrorBody(error: RelayError): OpenAiErrorBody {
  const { kind, code } = sdkErrorOf(error);
  return { error: { message: sdkMessageOf(error), type: types[kind], code, param: paramOf(error) } };
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

export const openAiErrors: ErrorForm = (error) => ({ status: sdkErrorOf(error).status, body: openAiErrorBody(error) });

import { httpStatusOf, type RelayError } from '../../shared/errors.js';
import { publicCodeOf } from '../http/responses.js';
import { isOfUnknownModel } from './message-parts.js';

/** Failures of the model CLI that a client can react to, with the HTTP status that most APIs have for them. */
const statuses = {
  overloaded: 503,
  quota: 429,
  prompt_too_long: 400,
  request_refused: 400,
  model_unknown: 404,
} as const;
export type FailureKind = keyof typeof statuses;
const failureKinds = Object.keys(statuses) as readonly FailureKind[];

/** Returns null for an error whose code says enough. */
export function failureKindOf(error: RelayError): FailureKind | null {
  if (error.reason === 'budget') return 'quota';
  if (isOfUnknownModel(error)) return 'model_unknown';
  if (publicCodeOf(error) !== 'cli_error') return null;
  return failureKinds.find((kind) => kind === error.reason) ?? null;
}

/** Returns the HTTP status that most APIs have for an error. */
export function sdkStatusOf(error: RelayError): number {
  const kind = failureKindOf(error);
  return kind === null ? httpStatusOf[publicCodeOf(error)] : statuses[kind];
}

/**
 * Returns the error message. Clients such as LangChain recognize by these words, not by the code, that a conversation
 * is too long.
 */
export function sdkMessageOf({ reason, message }: RelayError): string {
  return reason === 'prompt_too_long' ? `the input exceeds the context window of the model: ${message}` : message;
}

import type { RelayError } from '../../shared/errors.js';
import type { ErrorForm } from '../../worker/http/exchange.js';
import { sdkErrorOf, sdkMessageOf } from '../doors/sdk-errors.js';

/** Returns an error body, which is also a line of a stream. */
export function ollamaErrorBody(error: RelayError): { readonly error: string } {
  return { error: sdkMessageOf(error) };
}

/** Ollama's API has only a sentence as its error. */
export const ollamaErrors: ErrorForm = (error) => ({ status: sdkErrorOf(error).status, body: ollamaErrorBody(error) });

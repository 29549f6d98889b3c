import type { RelayError } from '../../shared/errors.js';
import { codeTable, type ErrorKind, reasonTable } from '../../shared/tables/errors.js';
import { publicCodeOf } from '../../worker/http/responses.js';
import { isOfUnknownModel } from './messages.js';

/** Error in the APIs of other programs. `status`: the HTTP status that most of them have. */
interface SdkError {
  readonly kind: ErrorKind;
  readonly status: number;
  readonly code: string;
}

/** HTTP statuses of the kinds that only a reason has. */
const statuses = { request: 400, not_found: 404, quota: 429, overloaded: 503 } as const;

export function sdkErrorOf(error: RelayError): SdkError {
  const publicCode = publicCodeOf(error);
  const reason = isOfUnknownModel(error) ? 'model_unknown' : error.reason;
  const facts = reason && reasonTable[reason];
  const code = facts?.foreignCode ?? reason ?? publicCode;
  if (facts?.kind === undefined) return { ...codeTable[publicCode], code };
  return { kind: facts.kind, status: statuses[facts.kind], code };
}

/**
 * Returns the error message. Clients such as LangChain recognize by these words, not by the code, that a conversation
 * is too long.
 */
export function sdkMessageOf({ reason, message }: RelayError): string {
  return reason === 'prompt_too_long' ? `the input exceeds the context window of the model: ${message}` : message;
}

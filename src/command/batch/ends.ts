import { type CommandError, exitCodes, ServiceError } from '../base/errors.js';

/** Fields of a line with an answer, without its ID. */
interface Answer {
  readonly response: string;
  readonly structured?: unknown;
  readonly model: string | null;
  readonly usage: object | null;
  readonly request_id: string;
}

/** Fields of a line with a failure, without its ID. */
export interface Failure {
  readonly error: {
    readonly code: string;
    readonly reason?: string;
    readonly message: string;
    readonly request_id?: string;
  };
}

export type PromptEnd = Answer | Failure;

export function failureOf(error: CommandError): Failure {
  if (!(error instanceof ServiceError)) return { error: { code: 'internal_error', message: error.message } };
  const { error: code, reason, message, request_id: id } = error.body;
  return { error: { code, ...(reason !== undefined && { reason }), message, ...(id !== '' && { request_id: id }) } };
}

/** Answer of OpenAI's API. */
interface Completion {
  readonly id?: string;
  readonly model?: string;
  readonly choices?: {
    readonly message?: { readonly content?: string | null };
    readonly finish_reason?: string | null;
  }[];
  readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens: number } | null;
}

/** Returns the end in the body of a successful response of OpenAI's API. */
export function endIn({ id = '', model, choices, usage }: Completion, isJson: boolean): PromptEnd {
  const [choice] = choices ?? [];
  const response = choice?.message?.content ?? '';
  const requestId = id.replace('chatcmpl-', '');
  if (choice?.finish_reason === 'content_filter') {
    const message = response === '' ? 'the model refused to answer' : response;
    return { error: { code: 'cli_error', reason: 'refused', message, request_id: requestId } };
  }
  const structured = isJson ? jsonIn(response) : undefined;
  if (isJson && structured === undefined) {
    const isCut = choice?.finish_reason === 'length';
    const message = isCut ? 'the answer was cut off before its JSON was complete' : 'the answer is not valid JSON';
    return { error: { code: 'cli_error', reason: 'answer_broken', message, request_id: requestId } };
  }
  return {
    response,
    ...(isJson && { structured }),
    model: model ?? null,
    usage: usage ? { input_tokens: usage.prompt_tokens, output_tokens: usage.completion_tokens } : null,
    request_id: requestId,
  };
}

/** Parses an answer; undefined if it is not JSON. */
function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Pause in seconds after a failure that an operator must repair, such as a missing login. */
const repairSeconds = 30;

/**
 * Returns the pause after which the same request may succeed; null if it will fail again. `seconds` is undefined if the
 * service names no time.
 */
export function pauseAfter(error: CommandError): { readonly seconds: number | undefined } | null {
  if (!(error instanceof ServiceError)) {
    const isAway = error.exitCode === exitCodes.unavailable || error.exitCode === exitCodes.protocol;
    return isAway ? { seconds: undefined } : null;
  }
  const { error: code, reason, retry_after_seconds: seconds } = error.body;
  if (code === 'spawn_error' || reason === 'auth') return { seconds: seconds ?? repairSeconds };
  const isTemporary = temporary.has(reason ?? code) || (code === 'cli_error' && seconds !== undefined);
  return isTemporary ? { seconds } : null;
}

const temporary: ReadonlySet<string> = new Set([
  ...['rate_limited', 'concurrency_limited', 'shutting_down', 'store_unavailable', 'queue_timeout'],
  ...['idempotency_in_progress', 'host_lost', 'overloaded', 'quota'],
]);

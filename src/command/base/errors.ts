import type { ErrorBody } from '../../shared/api/error.js';
import { cliReasons, type PublicCode, publicCodes } from '../../shared/errors.js';

/** Exit codes for scripts. From 64 to 78 they follow sysexits.h. */
export const exitCodes = {
  ok: 0,
  /** The model failed, or the service reports that it is not ok. */
  failed: 1,
  usage: 64,
  refused: 65,
  unavailable: 69,
  internal: 70,
  output: 74,
  tryLater: 75,
  protocol: 76,
  notAllowed: 77,
  config: 78,
  interrupted: 130,
  /** Exit code that a shell reports for SIGPIPE: 128 and the number of the signal. */
  brokenPipe: 141,
} as const;

export const exitCodeOfError = {
  validation_error: exitCodes.refused,
  payload_too_large: exitCodes.refused,
  not_found: exitCodes.refused,
  method_not_allowed: exitCodes.protocol,
  unauthorized: exitCodes.notAllowed,
  forbidden: exitCodes.notAllowed,
  rate_limited: exitCodes.tryLater,
  concurrency_limited: exitCodes.tryLater,
  shutting_down: exitCodes.tryLater,
  store_unavailable: exitCodes.tryLater,
  queue_timeout: exitCodes.tryLater,
  idempotency_in_progress: exitCodes.tryLater,
  idempotency_mismatch: exitCodes.refused,
  timeout: exitCodes.failed,
  cli_error: exitCodes.failed,
  spawn_error: exitCodes.unavailable,
  internal_error: exitCodes.internal,
} as const satisfies Record<PublicCode, number>;

/** Error that ends the command with a message for the user and an exit code for scripts. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly exitCode: number;

  constructor(exitCode: number, message: string) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Makes the error for a command line that this command cannot accept. */
export function usageError(verb: string, message: string): CommandError {
  return new CommandError(exitCodes.usage, `${verb}: ${message}\nRun "prompt-relay ${verb} --help" for usage.`);
}

export function jobCancelled(by: string | undefined): CommandError {
  return new CommandError(exitCodes.failed, `the job was cancelled${by === undefined ? '' : ` by an ${by}`}`);
}

/** Error body of a response. */
export class ServiceError extends CommandError {
  readonly body: ErrorBody;

  constructor(body: ErrorBody) {
    super(exitCodeOfError[body.error], messageFor(body));
    this.body = body;
  }

  get code(): PublicCode {
    return this.body.error;
  }

  /** Whether the service refused this field of the request. */
  concerns(field: string): boolean {
    return this.body.details?.some(({ path }) => path === field) === true;
  }
}

/** Error codes of OpenAI's API that stand for a reason of `cli_error`. */
const reasonsOf: Readonly<Record<string, ErrorBody['reason']>> = {
  insufficient_quota: 'quota',
  context_length_exceeded: 'prompt_too_long',
  model_not_found: 'model_unknown',
};

/** Converts an error of OpenAI's API to the service's native format; null for any other body. */
export function openAiError(body: unknown, retryAfterSeconds?: number): ErrorBody | null {
  const { message, code } = Object(Object(body).error);
  if (typeof message !== 'string') return null;
  const publicCode = publicCodes.find((known) => known === code);
  const reason =
    publicCode === undefined ? (cliReasons.find((known) => known === code) ?? reasonsOf[code] ?? 'other') : null;
  return {
    error: publicCode ?? 'cli_error',
    message,
    request_id: '',
    ...(reason !== null && { reason }),
    ...(retryAfterSeconds !== undefined && { retry_after_seconds: retryAfterSeconds }),
  };
}

export class InterruptedError extends Error {
  override readonly name = 'InterruptedError';
}

/** Formats an error body. Failures of the service include the request ID, which the operator can find in the log. */
function messageFor(body: ErrorBody): string {
  const { error, reason, message, retry_after_seconds: seconds, request_id: id } = body;
  const serviceFailures: readonly number[] = [exitCodes.internal, exitCodes.failed, exitCodes.unavailable];
  const wait = seconds === undefined ? '' : ` (try again in ${seconds} s)`;
  const reference = serviceFailures.includes(exitCodeOfError[error]) ? ` (request ${id})` : '';
  const code = reason === undefined ? error : `${error} (${reason})`;
  return `${code}: ${message}${wait}${reference}${hintFor(body)}`;
}

const keyHint = 'Set the key with "prompt-relay login", --key, MODEL_API_KEY or MODEL_API_KEY_FILE.';
const modelHint = '"prompt-relay models" lists the models.';
const cliHint = 'On the machine of the service, "prompt-relay check" shows what the model CLI says.';

/** Returns advice for the user, or an empty string if the message suffices. */
function hintFor({ error, reason, message, details }: ErrorBody): string {
  if (error === 'unauthorized') return message.includes('MODEL_API_KEY') ? '' : `\n${keyHint}`;
  if (reason === 'model_unknown' || details?.some(({ path }) => path === 'model')) return `\n${modelHint}`;
  return error === 'spawn_error' || reason === 'auth' ? `\n${cliHint}` : '';
}

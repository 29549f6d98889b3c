import type { ErrorBody } from '../../shared/api/error.js';
import { type CliReason, cliReasons, type PublicCode, publicCodes } from '../../shared/errors.js';
import { codeTable, reasonTable } from '../../shared/tables/errors.js';

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

export function exitCodeOfError(code: PublicCode): number {
  return exitCodes[codeTable[code].exit];
}

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
    super(exitCodeOfError(body.error), messageFor(body));
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

/** Returns the reason of `cli_error` for which OpenAI's API has this code. */
function reasonOf(code: unknown): CliReason {
  return cliReasons.find((known) => known === code || reasonTable[known].foreignCode === code) ?? 'other';
}

/** Converts an error of OpenAI's API to the service's native format; null for any other body. */
export function openAiError(body: unknown, retryAfterSeconds?: number): ErrorBody | null {
  const { message, code } = Object(Object(body).error);
  if (typeof message !== 'string') return null;
  if (code === 'storing_is_off') return { error: 'forbidden', reason: code, message, request_id: '' };
  const publicCode = publicCodes.find((known) => known === code);
  return {
    error: publicCode ?? 'cli_error',
    message,
    request_id: '',
    ...(publicCode === undefined && { reason: reasonOf(code) }),
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
  const reference = serviceFailures.includes(exitCodeOfError(error)) ? ` (request ${id})` : '';
  const code = reason === undefined ? error : `${error} (${reason})`;
  return `${code}: ${message}${wait}${reference}${hintFor(body)}`;
}

const keyHint = 'Set the key with "prompt-relay login", --key, MODEL_API_KEY or MODEL_API_KEY_FILE.';
const hints = {
  models: '"prompt-relay models" lists the models.',
  check: 'On the machine of the service, "prompt-relay check" shows what the model CLI says.',
} as const;

/** Returns advice for the user, or an empty string if the message suffices. */
function hintFor({ error, reason, message, details }: ErrorBody): string {
  if (error === 'unauthorized') return message.includes('MODEL_API_KEY') ? '' : `\n${keyHint}`;
  if (details?.some(({ path }) => path === 'model')) return `\n${hints.models}`;
  const advice = error === 'spawn_error' ? 'check' : reason && reasonTable[reason].advice;
  return advice === undefined ? '' : `\n${hints[advice]}`;
}

/** Every code an error body can carry, with its HTTP status. The list is closed: the contract names no other. */
export const httpStatusOf = {
  validation_error: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  payload_too_large: 413,
  rate_limited: 429,
  concurrency_limited: 429,
  cli_error: 500,
  spawn_error: 500,
  internal_error: 500,
  shutting_down: 503,
  queue_timeout: 504,
  timeout: 504,
} as const;

export type ErrorCode = keyof typeof httpStatusOf;

export const errorCodes = Object.keys(httpStatusOf) as [ErrorCode, ...ErrorCode[]];

/** Why a model CLI failed, as far as it lets us know. */
export const cliReasons = [
  'auth',
  'quota',
  'overloaded',
  'prompt_too_long',
  'model_unknown',
  'output_too_large',
  'crashed',
  'other',
] as const;

export type CliReason = (typeof cliReasons)[number];

/** One fault: where it is, and what is wrong there. Never echoes a value. */
export interface Detail {
  readonly path: string;
  readonly message: string;
}

export interface ErrorExtras {
  readonly details?: readonly Detail[] | undefined;
  readonly retryAfterSeconds?: number | undefined;
}

/** A failure that a client is told about: `message` is written for it, and nothing in it is secret. */
export class RelayError extends Error {
  override readonly name = 'RelayError';
  readonly code: ErrorCode;
  readonly details: readonly Detail[] | undefined;
  readonly retryAfterSeconds: number | undefined;

  constructor(code: ErrorCode, message: string, extras: ErrorExtras = {}) {
    super(message);
    this.code = code;
    this.details = extras.details;
    this.retryAfterSeconds = extras.retryAfterSeconds;
  }
}

/** The caller's wish to stop: the client has gone, or the worker that spoke for it. Nobody is left to be told. */
export class Cancelled extends Error {
  override readonly name = 'Cancelled';
}

export function cliError(reason: CliReason, message: string): RelayError {
  return new RelayError('cli_error', message, { details: [{ path: 'reason', message: reason }] });
}

export function invalid(path: string, message: string): RelayError {
  return new RelayError('validation_error', `${path}: ${message}`, { details: [{ path, message }] });
}

/** For what the drain refuses or cuts. A service that restarts is back within a few seconds. */
export function shuttingDown(): RelayError {
  return new RelayError('shutting_down', 'the service is shutting down', { retryAfterSeconds: 5 });
}

/** Whether what was thrown is a fault of ours, for the log: neither an answer for a client nor a caller's wish to stop. */
export function isDefect(thrown: unknown): boolean {
  return !(thrown instanceof RelayError || thrown instanceof Cancelled);
}

/** What a client may know of any thrown value: a RelayError as it is, everything else as `internal_error`. */
export function toRelayError(thrown: unknown): RelayError {
  return thrown instanceof RelayError ? thrown : new RelayError('internal_error', 'internal error');
}

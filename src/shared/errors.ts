import { z } from 'zod';

/** Every code an error body can carry, with its HTTP status. The list is closed: the contract names no other. */
export const httpStatusOf = {
  validation_error: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  idempotency_in_progress: 409,
  payload_too_large: 413,
  idempotency_mismatch: 422,
  rate_limited: 429,
  concurrency_limited: 429,
  cli_error: 500,
  spawn_error: 500,
  internal_error: 500,
  shutting_down: 503,
  store_unavailable: 503,
  queue_timeout: 504,
  timeout: 504,
} as const;

/** A code that an answer can have. */
export type PublicCode = keyof typeof httpStatusOf;
export const publicCodes = Object.keys(httpStatusOf) as [PublicCode, ...PublicCode[]];

/** `cancelled` is never sent: the caller has gone and waits for no answer. */
export const errorCodes = [...publicCodes, 'cancelled'] as const;
export type ErrorCode = PublicCode | 'cancelled';

/** Why a model CLI failed, as far as it lets us know. */
export const cliReasons = [
  'auth',
  'quota',
  'overloaded',
  'prompt_too_long',
  'model_unknown',
  'request_refused',
  'output_too_large',
  'schema_mismatch',
  'empty_answer',
  'answer_broken',
  'refused',
  'host_lost',
  'crashed',
  'other',
] as const;
export type CliReason = (typeof cliReasons)[number];

/**
 * What `reason` of an error body can be: of `cli_error`, of the 400 for a conversation that can't be used, or of the 429
 * for a budget that is used up.
 */
export const errorReasons = [...cliReasons, 'conversation_unknown', 'budget'] as const;
export type ErrorReason = (typeof errorReasons)[number];

/** What a refused quota is about: the whole account, or the model that was asked. `resetsAt` is in milliseconds since the epoch. */
const quotaRefusal = z.object({ scope: z.enum(['account', 'model']), resetsAt: z.number().nullable() }).readonly();
export type QuotaRefusal = z.infer<typeof quotaRefusal>;

/** One fault of a request: where it is, and what is wrong there. Never repeats a value. */
const detail = z.object({ path: z.string(), message: z.string() }).readonly();
export type Detail = z.infer<typeof detail>;

/** A RelayError as a plain record, which can cross from one process to another. */
export const wireError = z
  .object({
    code: z.enum(errorCodes),
    message: z.string(),
    reason: z.enum(errorReasons).optional(),
    /** For the reason `quota`, where a code says so. Not sent to clients. */
    quota: quotaRefusal.optional(),
    /** For the reason `auth`, where a code says that the account's credential is refused. Not sent to clients. */
    scope: z.literal('account').optional(),
    /** The end of what the model CLI wrote to stderr. For the log: without known secrets, but it may name paths. */
    stderr: z.string().optional(),
    /** For `validation_error`. */
    details: z.array(detail).readonly().optional(),
    retryAfterSeconds: z.number().optional(),
    /** For `cancelled`: the client that has asked for it, where the API was asked. Not sent to clients. */
    cancelledBy: z.string().optional(),
  })
  .readonly();
export type WireError = z.infer<typeof wireError>;
export type ErrorExtras = Omit<WireError, 'code' | 'message'>;

/** An expected failure. `message` is written for the client and holds no secret. */
export class RelayError extends Error {
  override readonly name = 'RelayError';
  readonly code: ErrorCode;
  readonly reason: ErrorReason | undefined;
  readonly quota: QuotaRefusal | undefined;
  readonly scope: 'account' | undefined;
  readonly stderr: string | undefined;
  readonly details: readonly Detail[] | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly cancelledBy: string | undefined;

  constructor(code: ErrorCode, message: string, extras: ErrorExtras = {}) {
    super(message);
    this.code = code;
    this.reason = extras.reason;
    this.quota = extras.quota;
    this.scope = extras.scope;
    this.stderr = extras.stderr;
    this.details = extras.details;
    this.retryAfterSeconds = extras.retryAfterSeconds;
    this.cancelledBy = extras.cancelledBy;
  }
}

export function cliError(
  reason: CliReason,
  message: string,
  extras: Pick<ErrorExtras, 'quota' | 'scope' | 'stderr'> = {},
): RelayError {
  return new RelayError('cli_error', message, { reason, ...extras });
}

export function invalid(path: string, message: string, reason?: 'conversation_unknown'): RelayError {
  return new RelayError('validation_error', `${path}: ${message}`, { reason, details: [{ path, message }] });
}

const maxRetrySeconds = 300;

/** A time to wait as it is sent to clients: whole seconds, between 1 and 300. */
export function retrySeconds(ms: number): number {
  return Math.min(Math.max(Math.ceil(ms / 1000), 1), maxRetrySeconds);
}

/** The default: a service that restarts is back within a few seconds. */
const restartSeconds = 5;

export function shuttingDown(retryAfterSeconds = restartSeconds): RelayError {
  return new RelayError('shutting_down', 'the service is shutting down', { retryAfterSeconds });
}

/** By then a disk may have room again. */
const storeSeconds = 5;

export function storeUnavailable(): RelayError {
  return new RelayError('store_unavailable', 'the store that keeps conversations takes nothing at the moment', {
    retryAfterSeconds: storeSeconds,
  });
}

export function idempotencyMismatch(): RelayError {
  const message = 'this Idempotency-Key was sent with another request before: each request needs a key of its own';
  return new RelayError('idempotency_mismatch', message);
}

export function idempotencyInProgress(retryAfterSeconds: number): RelayError {
  const message = 'the first request with this Idempotency-Key is still being answered';
  return new RelayError('idempotency_in_progress', message, { retryAfterSeconds });
}

/** The caller no longer wants the result: the client has gone, or the worker that spoke for it. */
export function cancelled(message: string, cancelledBy?: string): RelayError {
  return new RelayError('cancelled', message, { cancelledBy });
}

/** The caller has died. For a job that is its worker, which can't log the request any more. */
export const callerDied = 'the caller has gone';

export function isCancelled(thrown: unknown): boolean {
  return thrown instanceof RelayError && thrown.code === 'cancelled';
}

/** Whether a thrown value is a bug of ours, which belongs in the log. */
export function isDefect(thrown: unknown): boolean {
  return !(thrown instanceof RelayError);
}

/** What a client may know of a thrown value: a RelayError as it is, anything else as `internal_error`. */
export function toRelayError(thrown: unknown): RelayError {
  return thrown instanceof RelayError ? thrown : new RelayError('internal_error', 'internal error');
}

/** With `fromWire`, the only way an error crosses from one process to another. */
export function toWire(thrown: unknown): WireError {
  const { code, message, reason, quota, scope, stderr, details, retryAfterSeconds, cancelledBy } = toRelayError(thrown);
  return { code, message, reason, quota, scope, stderr, details, retryAfterSeconds, cancelledBy };
}

export function fromWire({ code, message, ...extras }: WireError): RelayError {
  return new RelayError(code, message, extras);
}

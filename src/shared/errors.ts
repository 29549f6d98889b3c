import { z } from 'zod';
import { cliReasonTable, codeTable, reasonTable } from './tables/errors.js';

/** Error code that clients can get. */
export type PublicCode = keyof typeof codeTable;
export const publicCodes = Object.keys(codeTable) as [PublicCode, ...PublicCode[]];

export const httpStatusOf = Object.fromEntries(publicCodes.map((code) => [code, codeTable[code].status])) as {
  readonly [Code in PublicCode]: (typeof codeTable)[Code]['status'];
};

/** `cancelled` is never sent, because the client has disconnected. */
export const errorCodes = [...publicCodes, 'cancelled'] as const;
export type ErrorCode = PublicCode | 'cancelled';

/** Reason of a model CLI's failure, if it is known. */
export type CliReason = keyof typeof cliReasonTable;
export const cliReasons = Object.keys(cliReasonTable) as [CliReason, ...CliReason[]];

/** Value of `reason` in an error body. */
export type ErrorReason = keyof typeof reasonTable;
export const errorReasons = Object.keys(reasonTable) as [ErrorReason, ...ErrorReason[]];

/**
 * Refusal because of an exhausted quota: of the whole account, or of one model. `resetsAt` is in milliseconds since the
 * epoch.
 */
const quotaRefusal = z.object({ scope: z.enum(['account', 'model']), resetsAt: z.number().nullable() }).readonly();
export type QuotaRefusal = z.infer<typeof quotaRefusal>;

/** Fault in a request: its path, and a message, which never includes the faulty value. */
const detail = z.object({ path: z.string(), message: z.string() }).readonly();
export type Detail = z.infer<typeof detail>;

/** RelayError as a plain record, which can be sent between processes. */
export const wireError = z
  .object({
    code: z.enum(errorCodes),
    message: z.string(),
    reason: z.enum(errorReasons).optional(),
    /** Details of the reason `quota`, if an error code confirms it. Clients do not get them. */
    quota: quotaRefusal.optional(),
    /**
     * For the reason `auth`, if an error code confirms that the account's credential is refused. Not sent to clients.
     */
    scope: z.literal('account').optional(),
    /** End of the model CLI's stderr, for the log. Known secrets are removed, but it may include paths. */
    stderr: z.string().optional(),
    /** Only for `validation_error`. */
    details: z.array(detail).readonly().optional(),
    retryAfterSeconds: z.number().optional(),
    /** Client that requested the cancellation through the API, for `cancelled`. Not sent to clients. */
    cancelledBy: z.string().optional(),
  })
  .readonly();
export type WireError = z.infer<typeof wireError>;
export type ErrorExtras = Omit<WireError, 'code' | 'message'>;

/** Expected failure. `message` is written for the client and contains no secrets. */
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

/** Longest path of a fault. A name in a path may be as long as a whole body. */
const maxPathLength = 256;

/** Returns a path that is not too long to be sent to the client, several times. */
export function shortPath(path: string): string {
  return path.length > maxPathLength ? `${path.slice(0, maxPathLength)}…` : path;
}

export function invalid(longPath: string, message: string, reason?: 'conversation_unknown'): RelayError {
  const path = shortPath(longPath);
  return new RelayError('validation_error', `${path}: ${message}`, { reason, details: [{ path, message }] });
}

/** Returns the error of a request that needs what the service may not store for its client. `what`: such as `files`. */
export function storingIsOff(what: string): RelayError {
  const message = `the operator has decided that nothing of this client is stored (store=off), and ${what} must be stored`;
  return new RelayError('forbidden', message, { reason: 'storing_is_off' });
}

/** Seconds of `Retry-After` by cause, if no estimate exists. docs/errors.md says why. */
export const fixedRetries = {
  restart: 5,
  store: 5,
  turn_lock: 1,
  trial_job: 5,
  conversations: 1,
  background_jobs: 30,
  idempotency_keys: 1,
  body_memory: 1,
  connection: 1,
  schemas: 2,
  status_streams: 10,
} as const;

/** Greatest number of seconds in `Retry-After` by cause, if the service knows or estimates the time. */
export const estimatedRetries = {
  queue: 300,
  drain: 300,
  budget: 300,
  cli_wait: 300,
  cli_blocked: 3600,
  rate: Number.POSITIVE_INFINITY,
  wrong_keys: 900,
} as const;

/** Returns the value of `Retry-After`, an integer of at least 1. `ms`: time until a retry may succeed. */
export function retryAfter(cause: keyof typeof fixedRetries): number;
export function retryAfter(cause: keyof typeof estimatedRetries, ms: number): number;
export function retryAfter(cause: keyof typeof fixedRetries | keyof typeof estimatedRetries, ms = 0): number {
  if (cause in fixedRetries) return fixedRetries[cause as keyof typeof fixedRetries];
  return Math.min(Math.max(Math.ceil(ms / 1000), 1), estimatedRetries[cause as keyof typeof estimatedRetries]);
}

export function shuttingDown(retryAfterSeconds = retryAfter('restart')): RelayError {
  return new RelayError('shutting_down', 'the service is shutting down', { retryAfterSeconds });
}

/** Makes the error of a job that would wait longer than its client accepts. */
export function waitTooLong(retryAfterSeconds: number): RelayError {
  const message = 'the job would wait longer for a slot than Prefer: wait allows';
  return new RelayError('wait_too_long', message, { retryAfterSeconds });
}

export function storeUnavailable(message = 'the conversation store is unavailable'): RelayError {
  return new RelayError('store_unavailable', message, { retryAfterSeconds: retryAfter('store') });
}

/** Makes the error for a caller that no longer needs the result, because the client or its worker has disconnected. */
export function cancelled(message: string, cancelledBy?: string): RelayError {
  return new RelayError('cancelled', message, { cancelledBy });
}

/** Message for a call whose caller has died. For a job, this is its worker, which can no longer log the request. */
export const callerDied = 'the client has disconnected';

export function isCancelled(thrown: unknown): boolean {
  return thrown instanceof RelayError && thrown.code === 'cancelled';
}

/** Whether a thrown value is a defect of this service, which must be logged. */
export function isDefect(thrown: unknown): boolean {
  return !(thrown instanceof RelayError);
}

/**
 * Ignores an expected failure of work on which no result depends. Throws a defect again: unless it is caught, the
 * process records it and continues.
 */
export function ignoreFailure(thrown: unknown): void {
  if (isDefect(thrown)) throw thrown;
}

/** Returns an error that is safe for clients: a RelayError unchanged, any other value as `internal_error`. */
export function toRelayError(thrown: unknown): RelayError {
  return thrown instanceof RelayError ? thrown : new RelayError('internal_error', 'internal error');
}

/** Converts an error for another process. Errors are sent between processes only by `toWire` and `fromWire`. */
export function toWire(thrown: unknown): WireError {
  const { code, message, reason, quota, scope, stderr, details, retryAfterSeconds, cancelledBy } = toRelayError(thrown);
  return { code, message, reason, quota, scope, stderr, details, retryAfterSeconds, cancelledBy };
}

export function fromWire({ code, message, ...extras }: WireError): RelayError {
  return new RelayError(code, message, extras);
}

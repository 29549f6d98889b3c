import type { ErrorCode } from '../shared/errors.js';

/** How the command ends, for scripts; the numbers are those of sysexits.h where it has one. */
export const exitCodes = {
  ok: 0,
  /** The model failed, or the service says that it can't serve. */
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
} as const;

const exitCodeOfError = {
  validation_error: exitCodes.refused,
  payload_too_large: exitCodes.refused,
  not_found: exitCodes.refused,
  method_not_allowed: exitCodes.protocol,
  unauthorized: exitCodes.notAllowed,
  forbidden: exitCodes.notAllowed,
  rate_limited: exitCodes.tryLater,
  concurrency_limited: exitCodes.tryLater,
  shutting_down: exitCodes.tryLater,
  queue_timeout: exitCodes.tryLater,
  timeout: exitCodes.failed,
  cli_error: exitCodes.failed,
  spawn_error: exitCodes.unavailable,
  internal_error: exitCodes.internal,
} as const satisfies Record<ErrorCode, number>;

export function exitCodeOf(error: ErrorCode): number {
  return exitCodeOfError[error];
}

/** Ends the command: a sentence for the person, a code for the script. */
export class CommandFault extends Error {
  override readonly name = 'CommandFault';
  readonly exitCode: number;

  constructor(exitCode: number, message: string) {
    super(message);
    this.exitCode = exitCode;
  }
}

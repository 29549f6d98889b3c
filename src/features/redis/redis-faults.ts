import { RelayError, storeUnavailable } from '../../shared/errors.js';

export class TookTooLong extends Error {
  constructor(limitMs: number) {
    super(`Redis has not answered for ${limitMs} ms`);
  }
}

/**
 * The error of a command that was not sent, or whose answer was lost with the connection. The link has reported the
 * reason.
 */
export class NotConnected extends Error {}

/** The error of a command with an unknown outcome. */
export class Unanswered extends RelayError {
  constructor() {
    const { code, message, retryAfterSeconds } = storeUnavailable();
    super(code, message, { retryAfterSeconds });
  }
}

/** Error replies about the state of Redis; all others are about one command. */
const generalPermission =
  /(^|: )(OOM|READONLY|LOADING|MISCONF|NOAUTH|WRONGPASS|MASTERDOWN|NOREPLICAS|BUSY|CLUSTERDOWN|MOVED)\b/;

/** Whether the next command would fail too. */
export function isOfAllCommands(error: unknown): boolean {
  return !isAnswer(error) || generalPermission.test(error.message);
}

/** Converts an error. After an error reply, the command was not done; otherwise the outcome is unknown. */
export function unavailableFor(error: unknown): RelayError {
  return isAnswer(error) ? storeUnavailable() : new Unanswered();
}

export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Error replies for a missing permission. The wording differs between commands, scripts and versions. */
const missingRight = /^(NOPERM|ERR The user executing the script can't)\b.*?(channel|\bkeys?\b|$)/i;

/** Returns the reason; for a missing permission, with the ACL rule that grants it. */
export function reasonWithRight(error: unknown, prefix: string): string {
  const reason = reasonOf(error);
  const [isMissing, , where] = missingRight.exec(reason) ?? [];
  if (isMissing === undefined) return reason;
  const missingPermission = where === '' ? '+@all -@dangerous' : `~${prefix}:*`;
  return `NOPERM: its user needs ${where === 'channel' ? `&${prefix}:*` : missingPermission} (${reason})`;
}

/** Whether the error is an error reply of Redis, so that the command was not done. */
export function isAnswer(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError';
}

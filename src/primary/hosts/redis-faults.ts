import { RelayError, storeUnavailable } from '../../shared/errors.js';

export class TookTooLong extends Error {
  constructor(limitMs: number) {
    super(`Redis has not answered for ${limitMs} ms`);
  }
}

/** A command was not sent, or its answer was lost with the connection. The link has reported why. */
export class NotConnected extends Error {}

/** It is unknown whether the command was done. */
export class Unanswered extends RelayError {
  constructor() {
    const { code, message, retryAfterSeconds } = storeUnavailable();
    super(code, message, { retryAfterSeconds });
  }
}

/** Such an answer is about the state of Redis; any other one is about the command. */
const ofAllCommands =
  /(^|: )(OOM|READONLY|LOADING|MISCONF|NOAUTH|WRONGPASS|MASTERDOWN|NOREPLICAS|BUSY|CLUSTERDOWN|MOVED)\b/;

/** Whether the next command would fail as well. */
export function isOfAllCommands(error: unknown): boolean {
  return !isAnswer(error) || ofAllCommands.test(error.message);
}

/** Redis has not done what it refuses. */
export function unavailableFor(error: unknown): RelayError {
  return isAnswer(error) ? storeUnavailable() : new Unanswered();
}

export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Redis words it differently for commands and scripts, and in each version. */
const missingRight = /^(NOPERM|ERR The user executing the script can't)\b.*?(channel|\bkeys?\b|$)/i;

/** As `reasonOf`; if the user lacks a right, with that right as it stands in an ACL. */
export function reasonWithRight(error: unknown, prefix: string): string {
  const reason = reasonOf(error);
  const [isMissing, , where] = missingRight.exec(reason) ?? [];
  if (isMissing === undefined) return reason;
  const ofKeys = where === '' ? '+@all -@dangerous' : `~${prefix}:*`;
  return `NOPERM: its user needs ${where === 'channel' ? `&${prefix}:*` : ofKeys} (${reason})`;
}

/** Whether Redis itself has answered so: it has not done what it refuses. */
export function isAnswer(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError';
}

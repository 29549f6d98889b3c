import { RelayError, storeUnavailable } from '../../../shared/errors.js';

export class TookTooLong extends Error {
  constructor(limitMs: number) {
    super(`Redis has not answered for ${limitMs} ms`);
  }
}

/** What was asked for was not sent, or its answer was lost with the connection. Why, the link has told already. */
export class NotConnected extends Error {}

/** Nobody knows whether it was done. */
export class Unanswered extends RelayError {
  constructor() {
    const { code, message, retryAfterSeconds } = storeUnavailable();
    super(code, message, { retryAfterSeconds });
  }
}

/** Such an answer is about Redis as it is at the moment; any other one is about what was asked. */
const ofAllCommands =
  /(^|: )(OOM|READONLY|LOADING|MISCONF|NOAUTH|WRONGPASS|MASTERDOWN|NOREPLICAS|BUSY|CLUSTERDOWN|MOVED)\b/;

/** Whether the next command would fail as well. */
export function isOfAllCommands(error: unknown): boolean {
  return !isAnswer(error) || ofAllCommands.test(error.message);
}

/** What Redis refuses has not been done. */
export function unavailableFor(error: unknown): RelayError {
  return isAnswer(error) ? storeUnavailable() : new Unanswered();
}

export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Redis says it in one way for a command and in another for a script, and so do its versions. */
const missingRight = /^(NOPERM|ERR The user executing the script can't)\b.*?(channel|\bkeys?\b|$)/i;

/** As `reasonOf`; where the user lacks a right, with that right as an ACL has it. */
export function reasonWithRight(error: unknown, prefix: string): string {
  const reason = reasonOf(error);
  const [isMissing, , where] = missingRight.exec(reason) ?? [];
  if (isMissing === undefined) return reason;
  const ofKeys = where === '' ? '+@all -@dangerous' : `~${prefix}:*`;
  return `NOPERM: its user needs ${where === 'channel' ? `&${prefix}:*` : ofKeys} (${reason})`;
}

/** Of Redis itself: what it refuses, it has not done. */
export function isAnswer(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError';
}

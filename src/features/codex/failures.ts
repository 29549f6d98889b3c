import {
  type FailureTable,
  failedTurn,
  isKnownStatus,
  quotaOfModel,
  sentence,
  turnFailed,
  wordsOfApi,
} from '../../primary/cli/adapters/common/failure.js';
import type { QuotaReport, QuotaWindow, Turn, TurnEnd, TurnFailed } from '../../primary/cli/contract/adapter.js';
import type { CliReason, QuotaRefusal } from '../../shared/errors.js';
import type { CodexError, CodexLimits } from './lines.js';

const table: FailureTable = {
  codes: [
    ['name', 'contextWindowExceeded', 'prompt_too_long'],
    ['name', 'sessionBudgetExceeded', 'quota'],
    ['name', 'usageLimitExceeded', 'quota'],
    ['name', 'rateLimitExceeded', 'quota'],
    ['name', 'flexUnavailable', 'overloaded'],
    ['name', 'serverOverloaded', 'overloaded'],
    ['name', 'policyCapacityUnavailable', 'overloaded'],
    ['name', 'modelNotFound', 'model_unknown'],
    ['name', 'badRequest', 'request_refused'],
    ['name', 'cyberPolicy', 'refused'],
    ['name', 'misalignmentPolicyViolation', 'refused'],
    ['name', 'unauthorized', 'auth', 'account'],
  ],
  words: [
    [/missing environment variable/i, 'auth'],
    [/not supported when using codex with a chatgpt account/i, 'model_unknown'],
    [/rate limit/i, 'quota'],
    [/"type":\s*"invalid_request_error"/, 'request_refused'], // for a 400, the program names no code
  ],
};

/**
 * Whether retries are useless for a status. For 500 and above, the program has already tried five times before its
 * first report.
 */
const isFinal = (status: number) => isKnownStatus(status) || status >= 500;

/**
 * Temporary errors: a broken stream, or a limit that ends within seconds. Any other error without a status comes from
 * the API.
 */
const passing = /stream|connection|timed? ?out|rate limit/i;

/** Error of a WebSocket. Such an error says nothing about the API: the program continues without one. */
const webSocketAddress = /url: wss?:/;

/**
 * Returns the failure if a retry that the program announces is useless: its retries take minutes, longer than a job
 * may. Returns null if a retry may succeed.
 */
export function finalError(error: CodexError, limits: CodexLimits | null, turn: Turn | null): TurnFailed | null {
  const status = statusOf(error.codexErrorInfo);
  const words = error.additionalDetails ?? '';
  const mayPass = status === null ? passing.test(words) : !isFinal(status) || isOfWebSocket(status, words);
  return mayPass ? null : failed(error, limits, turn);
}

/**
 * How the API has ended the answer before its end, which the program only reports as an error, and then asks the API
 * again; null for any other error.
 */
export function earlyEnd(error: CodexError | null | undefined): Pick<TurnEnd, 'isCutShort' | 'refusal'> | null {
  const words = `${error?.message} ${error?.additionalDetails}`;
  if (/incomplete response returned, reason: max_output_tokens/i.test(words)) return { isCutShort: true };
  return /incomplete response returned, reason: content_filter/i.test(words)
    ? { refusal: { category: null, explanation: null } }
    : null;
}

function isOfWebSocket(status: number, words: string): boolean {
  return status !== 401 && webSocketAddress.test(words);
}

/** Returns the failure of a turn. `limits` is the last report of the account. */
export function failed(error: CodexError | null, limits: CodexLimits | null, turn: Turn | null): TurnFailed {
  const { message = '', additionalDetails: details = null, codexErrorInfo: info = null } = error ?? {};
  return failedTurn(table, {
    codes: [
      ['name', typeof info === 'string' ? info : null],
      ['status', statusOf(info)],
    ],
    words: withoutAddress(wordsOfApi(details ?? message)),
    hidden: `${message} ${details ?? ''}`,
    turn,
    isOfRequest: false,
    quota: quotaOf(info, limits, turn),
  });
}

/** Returns the failure for a request that the program has rejected. */
export function rejected(reason: CliReason, what: string, words: string): TurnFailed {
  return turnFailed(reason, sentence(`the model CLI does not accept the ${what}`, withoutAddress(words)));
}

function statusOf(info: CodexError['codexErrorInfo']): number | null {
  if (info == null || typeof info === 'string') return null;
  return Object.values(info)[0]?.httpStatusCode ?? null;
}

/**
 * Returns the exhausted quota. A limit per minute applies to one model. `usageLimitExceeded` means a subscription or an
 * account without credit; if no window is used up and the job names a model, the limit may apply to that model only.
 */
function quotaOf(info: CodexError['codexErrorInfo'], limits: CodexLimits | null, turn: Turn | null): QuotaRefusal {
  const resetsAt = limits === null ? null : closedUntil(limits);
  const mayBeOfModel = resetsAt === null && turn !== null && turn.model !== null;
  const isOfAccount = info === 'usageLimitExceeded' && !mayBeOfModel;
  return isOfAccount ? { scope: 'account', resetsAt } : quotaOfModel;
}

/** Hides the API's address, which is only the operator's business. */
function withoutAddress(words: string): string {
  return words.replace(/,? ?url: \S+/g, '');
}

type CodexWindow = NonNullable<CodexLimits['primary']>;

const nameByMinutes: ReadonlyMap<number, QuotaWindow['name']> = new Map([
  [300, 'five_hour'],
  [10_080, 'seven_day'],
]);

const warningPercent = 90;

/** Returns the windows of the account; empty with an API key. */
export function quotaReports(limits: CodexLimits): readonly QuotaReport[] {
  const windows = windowsOf(limits).map((window) => windowOf(window, limits.credits?.hasCredits === true));
  return windows.length === 0 ? [] : [{ type: 'quota-report', windows }];
}

/** Returns when the last exhausted window opens again, milliseconds since the epoch; null if unknown. */
function closedUntil(limits: CodexLimits): number | null {
  const times = windowsOf(limits).flatMap(({ usedPercent, resetsAt }) =>
    usedPercent >= 100 && resetsAt != null ? [resetsAt * 1000] : [],
  );
  return times.length === 0 ? null : Math.max(...times);
}

function windowsOf({ primary, secondary }: CodexLimits): readonly CodexWindow[] {
  return [primary, secondary].flatMap((window) => (window == null ? [] : [window]));
}

/** Returns the state of a window. An account with credits is served beyond its limit. */
function windowOf({ usedPercent, windowDurationMins, resetsAt }: CodexWindow, hasCredits: boolean): QuotaWindow {
  const isClosed = usedPercent >= 100 && !hasCredits;
  return {
    name: nameByMinutes.get(windowDurationMins ?? 0) ?? 'other',
    status: isClosed ? 'rejected' : usedPercent >= warningPercent ? 'warning' : 'allowed',
    utilization: usedPercent / 100,
    resetsAt: resetsAt == null ? null : resetsAt * 1000,
  };
}

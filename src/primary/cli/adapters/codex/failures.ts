import type { CliReason, QuotaRefusal } from '../../../../shared/errors.js';
import type { QuotaReport, QuotaWindow, Turn, TurnEnd, TurnFailed } from '../../contract/adapter.js';
import {
  type FailureTable,
  failedTurn,
  isKnownStatus,
  quotaOfModel,
  sentence,
  turnFailed,
  wordsOfApi,
} from '../common/failure.js';
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
    ['name', 'cyberPolicy', 'refused'],
    ['name', 'misalignmentPolicyViolation', 'refused'],
    ['name', 'unauthorized', 'auth', 'account'],
  ],
  words: [
    [/missing environment variable/i, 'auth'],
    [/not supported when using codex with a chatgpt account/i, 'model_unknown'],
    [/rate limit/i, 'quota'],
  ],
};

/** What no further try would change. Of 500 and more, the program has tried five times before it says so at all. */
const isFinal = (status: number) => isKnownStatus(status) || status >= 500;

/** A stream that broke, or a limit that the program says is over in seconds. Anything else without a status is an error of the API. */
const passing = /stream|connection|timed? ?out|rate limit/i;

/** A WebSocket that is refused shows nothing of the API: the program continues without one. */
const ofWebSocket = /url: wss?:/;

/**
 * Why there is no use in waiting for a program that says it tries again: its tries take minutes, longer than a job may.
 * Null where it may have luck.
 */
export function finalError(error: CodexError, limits: CodexLimits | null, asked: Turn | null): TurnFailed | null {
  const status = statusOf(error.codexErrorInfo);
  const words = error.additionalDetails ?? '';
  const mayPass = status === null ? passing.test(words) : !isFinal(status) || isOfWebSocket(status, words);
  return mayPass ? null : failed(error, limits, asked);
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
  return status !== 401 && ofWebSocket.test(words);
}

/** `limits` is the last report of the account, and `asked` the turn. */
export function failed(error: CodexError | null, limits: CodexLimits | null, asked: Turn | null): TurnFailed {
  const { message = '', additionalDetails: details = null, codexErrorInfo: info = null } = error ?? {};
  return failedTurn(table, {
    codes: [
      ['name', typeof info === 'string' ? info : null],
      ['status', statusOf(info)],
    ],
    words: withoutAddress(wordsOfApi(details ?? message)),
    hidden: `${message} ${details ?? ''}`,
    asked,
    isOfRequest: false,
    quota: quotaOf(info, limits, asked),
  });
}

/** The program did not take what it was asked. */
export function rejected(reason: CliReason, what: string, words: string): TurnFailed {
  return turnFailed(reason, sentence(`the model CLI does not take the ${what}`, withoutAddress(words)));
}

function statusOf(info: CodexError['codexErrorInfo']): number | null {
  if (info == null || typeof info === 'string') return null;
  return Object.values(info)[0]?.httpStatusCode ?? null;
}

/**
 * A limit by the minute holds for one model. Of a subscription, or an empty account, the program reports this name; where
 * no window is used up, a job that names a model may have met a limit of that model.
 */
function quotaOf(info: CodexError['codexErrorInfo'], limits: CodexLimits | null, asked: Turn | null): QuotaRefusal {
  const resetsAt = limits === null ? null : closedUntil(limits);
  const mayBeOfModel = resetsAt === null && asked !== null && asked.model !== null;
  const isOfAccount = info === 'usageLimitExceeded' && !mayBeOfModel;
  return isOfAccount ? { scope: 'account', resetsAt } : quotaOfModel;
}

/** Where the API is, is the operator's business. */
function withoutAddress(words: string): string {
  return words.replace(/,? ?url: \S+/g, '');
}

type CodexWindow = NonNullable<CodexLimits['primary']>;

const nameByMinutes: ReadonlyMap<number, QuotaWindow['name']> = new Map([
  [300, 'five_hour'],
  [10_080, 'seven_day'],
]);

const warningPercent = 90;

/** With an API key there are no windows to report. */
export function quotaReports(limits: CodexLimits): readonly QuotaReport[] {
  const windows = windowsOf(limits).map((window) => windowOf(window, limits.credits?.hasCredits === true));
  return windows.length === 0 ? [] : [{ type: 'quota-report', windows }];
}

/** When the last of the windows that are used up opens again, milliseconds since the epoch; null if unknown. */
export function closedUntil(limits: CodexLimits): number | null {
  const times = windowsOf(limits).flatMap(({ usedPercent, resetsAt }) =>
    usedPercent >= 100 && resetsAt != null ? [resetsAt * 1000] : [],
  );
  return times.length === 0 ? null : Math.max(...times);
}

function windowsOf({ primary, secondary }: CodexLimits): readonly CodexWindow[] {
  return [primary, secondary].flatMap((window) => (window == null ? [] : [window]));
}

/** Beyond its limit a window is served from credits, where the account has some. */
function windowOf({ usedPercent, windowDurationMins, resetsAt }: CodexWindow, hasCredits: boolean): QuotaWindow {
  const isClosed = usedPercent >= 100 && !hasCredits;
  return {
    name: nameByMinutes.get(windowDurationMins ?? 0) ?? 'other',
    status: isClosed ? 'rejected' : usedPercent >= warningPercent ? 'warning' : 'allowed',
    utilization: usedPercent / 100,
    resetsAt: resetsAt == null ? null : resetsAt * 1000,
  };
}

import type { CliReason, QuotaRefusal } from '../../../../shared/errors.js';
import type { QuotaReport, QuotaWindow, Turn, TurnFailed } from '../../contract/adapter.js';
import { reasonByStatus, reasonInWords, type Signs } from '../common/failure.js';
import { jsonOf } from '../common/lines.js';
import type { CodexError, CodexLimits } from './lines.js';

const reasonByName: ReadonlyMap<string, CliReason> = new Map([
  ['contextWindowExceeded', 'prompt_too_long'],
  ['sessionBudgetExceeded', 'quota'],
  ['usageLimitExceeded', 'quota'],
  ['rateLimitExceeded', 'quota'],
  ['flexUnavailable', 'overloaded'],
  ['serverOverloaded', 'overloaded'],
  ['policyCapacityUnavailable', 'overloaded'],
  ['modelNotFound', 'model_unknown'],
  ['cyberPolicy', 'refused'],
  ['misalignmentPolicyViolation', 'refused'],
  ['unauthorized', 'auth'],
]);

/** The last resort: some things are told in words only. */
const signs: Signs = [
  [/reason: content_filter/i, 'refused'],
  [/reason: max_output_tokens/i, 'output_too_large'],
  [/missing environment variable/i, 'auth'],
  [/not supported when using codex with a chatgpt account/i, 'model_unknown'],
  [/rate limit/i, 'quota'],
];

/** What no further try would change. Of 500 and more, the program has tried five times before it says so at all. */
const isFinal = (status: number) => reasonByStatus.has(status) || status >= 500;

/** A stream that broke, or a limit that is told to be over in seconds. Anything else without a status is an error of the API. */
const passing = /stream|connection|timed? ?out|rate limit/i;

/** A WebSocket that is refused says nothing of the API: the program goes on without. */
const ofWebSocket = /url: wss?:/;

/**
 * Why there is no use in waiting for a program that says it tries again: its tries take minutes, longer than a job may.
 * Null where it may have luck.
 */
export function hopeless(error: CodexError, limits: CodexLimits | null, asked: Turn | null): TurnFailed | null {
  const status = statusOf(error);
  const words = error.additionalDetails ?? '';
  const isRefused = /reason: content_filter/i.test(words);
  const mayPass = status === null ? passing.test(words) : !isFinal(status) || isOfWebSocket(status, words);
  return mayPass && !isRefused ? null : failed(error, limits, asked);
}

function isOfWebSocket(status: number, words: string): boolean {
  return status !== 401 && ofWebSocket.test(words);
}

/** `limits` is what the program last told of the account, and `asked` the turn. */
export function failed(error: CodexError | null, limits: CodexLimits | null, asked: Turn | null): TurnFailed {
  const message = sentence('the model CLI reports', wordsOf(error));
  if (error === null) return { type: 'turn-failed', reason: 'other', message };
  const coded = codedReason(error);
  const words = `${error.message} ${error.additionalDetails ?? ''}`;
  const reason = coded ?? reasonInWords(words, signs, asked) ?? 'other';
  const failure = { type: 'turn-failed', reason, message } as const;
  if (coded === 'quota') return { ...failure, quota: quotaOf(error, limits, asked) };
  return coded === 'auth' && statusOf(error) !== 403 ? { ...failure, scope: 'account' } : failure;
}

/** The program did not take what it was asked. */
export function unheard(reason: CliReason, what: string, words: string): TurnFailed {
  return { type: 'turn-failed', reason, message: sentence(`the model CLI does not take the ${what}`, words) };
}

function codedReason(error: CodexError): CliReason | undefined {
  const { codexErrorInfo: info } = error;
  return (typeof info === 'string' ? reasonByName.get(info) : undefined) ?? reasonByStatus.get(statusOf(error) ?? 0);
}

function statusOf({ codexErrorInfo: info }: CodexError): number | null {
  if (info == null || typeof info === 'string') return null;
  return Object.values(info)[0]?.httpStatusCode ?? null;
}

/**
 * A limit by the minute holds for one model. Of a subscription, or an empty account, the program tells by this name; where
 * no window is used up, a job that names a model may have met a limit of that model.
 */
function quotaOf(error: CodexError, limits: CodexLimits | null, asked: Turn | null): QuotaRefusal {
  const resetsAt = limits === null ? null : closedUntil(limits);
  const mayBeOfModel = resetsAt === null && asked !== null && asked.model !== null;
  const isOfAccount = error.codexErrorInfo === 'usageLimitExceeded' && !mayBeOfModel;
  return isOfAccount ? { scope: 'account', resetsAt } : { scope: 'model', resetsAt: null };
}

/** The API's own words, where the program passes on its whole answer. */
function wordsOf(error: CodexError | null): string {
  const words = error?.additionalDetails ?? error?.message ?? '';
  const answer = words.startsWith('{') ? (jsonOf(words) as { error?: { message?: unknown } } | null) : null;
  return typeof answer?.error?.message === 'string' ? answer.error.message : words;
}

const maxWords = 300;
/** Where the API is, is the operator's business. */
const address = /,? ?url: \S+/g;

function sentence(start: string, words: string): string {
  const [firstLine = ''] = words.replace(address, '').trim().split('\n');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this removes
  const printable = firstLine.replace(/[\x00-\x1f\x7f-\x9f]/g, '').slice(0, maxWords);
  return printable === '' ? start : `${start}: ${printable}`;
}

type CodexWindow = NonNullable<CodexLimits['primary']>;

const nameByMinutes: ReadonlyMap<number, QuotaWindow['name']> = new Map([
  [300, 'five_hour'],
  [10_080, 'seven_day'],
]);

const warningPercent = 90;

/** With an API key there are no windows to tell of. */
export function quotaReports(limits: CodexLimits): readonly QuotaReport[] {
  const windows = windowsOf(limits).map((window) => windowOf(window, limits.credits?.hasCredits === true));
  return windows.length === 0 ? [] : [{ type: 'quota-report', windows }];
}

/** When the last of the windows that are used up opens again, milliseconds since the epoch; null where that is not told. */
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

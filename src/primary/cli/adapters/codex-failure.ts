import type { CliReason, QuotaRefusal } from '../../../shared/errors.js';
import type { TurnFailed } from '../adapter.js';
import type { CodexError, CodexLimits } from './codex-lines.js';
import { closedUntil } from './codex-quota.js';
import { reasonByStatus } from './http-status.js';
import { jsonOf } from './lines.js';

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
const reasonByWords: readonly (readonly [RegExp, CliReason])[] = [
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
export function hopeless(error: CodexError, limits: CodexLimits | null): TurnFailed | null {
  const status = statusOf(error);
  const words = error.additionalDetails ?? '';
  if (/reason: content_filter/i.test(words)) return failed(error, limits);
  if (status === null) return passing.test(words) ? null : failed(error, limits);
  if (!isFinal(status)) return null;
  return status !== 401 && ofWebSocket.test(words) ? null : failed(error, limits);
}

/** `limits` is what the program last told of the account. */
export function failed(error: CodexError | null, limits: CodexLimits | null): TurnFailed {
  const words = wordsOf(error);
  const reason = error === null ? 'other' : reasonOf(error);
  const message = sentence('the model CLI reports', words);
  if (reason !== 'quota') return { type: 'turn-failed', reason, message };
  return { type: 'turn-failed', reason, message, quota: quotaOf(error, limits) };
}

/** The program did not take what it was asked. */
export function unheard(what: string, words: string): TurnFailed {
  return { type: 'turn-failed', reason: 'other', message: sentence(`the model CLI does not take the ${what}`, words) };
}

function reasonOf(error: CodexError): CliReason {
  const info = error.codexErrorInfo;
  const words = `${error.message} ${error.additionalDetails ?? ''}`;
  return (
    (typeof info === 'string' ? reasonByName.get(info) : undefined) ??
    reasonByStatus.get(statusOf(error) ?? 0) ??
    reasonByWords.find(([sign]) => sign.test(words))?.[1] ??
    'other'
  );
}

function statusOf({ codexErrorInfo: info }: CodexError): number | null {
  if (info == null || typeof info === 'string') return null;
  return Object.values(info)[0]?.httpStatusCode ?? null;
}

/** A limit by the minute holds for one model. Of a subscription, or an empty account, the program tells by this name. */
function quotaOf(error: CodexError | null, limits: CodexLimits | null): QuotaRefusal {
  if (error?.codexErrorInfo !== 'usageLimitExceeded') return { scope: 'model', resetsAt: null };
  return { scope: 'account', resetsAt: limits === null ? null : closedUntil(limits) };
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

import type { CliReason, QuotaRefusal } from '../../../../shared/errors.js';
import {
  type QuotaReport,
  type QuotaWindow,
  quotaWindowNames,
  type Turn,
  type TurnFailed,
} from '../../contract/adapter.js';
import { reasonByStatus, reasonInWords, type Signs } from '../common/failure.js';
import type { ControlResponse, RateLimits, ResultLine } from './lines.js';
import { modelSettings } from './writer.js';

const reasonByTerminal: ReadonlyMap<string, CliReason> = new Map([
  ['prompt_too_long', 'prompt_too_long'],
  ['blocking_limit', 'prompt_too_long'], // by its own estimate, before any request
]);

const reasonByStop: ReadonlyMap<string, CliReason> = new Map([['refusal', 'refused']]);

/** The only subtype that tells anything. */
const reasonBySubtype: ReadonlyMap<string, CliReason> = new Map([
  ['error_max_structured_output_retries', 'schema_mismatch'],
]);

const reasonByError: ReadonlyMap<string, CliReason> = new Map([
  ['authentication_failed', 'auth'],
  ['oauth_org_not_allowed', 'auth'],
  ['account_on_hold', 'auth'],
  ['verification_required', 'auth'],
  ['cloud_credential_error', 'auth'],
  ['billing_error', 'quota'],
  ['rate_limit', 'quota'],
  ['overloaded', 'overloaded'],
  ['model_not_found', 'model_unknown'],
  ['max_output_tokens', 'output_too_large'],
]);

/** Codes of the account, whatever status the API gives them. */
const ofAccount: ReadonlySet<string> = new Set([
  'oauth_org_not_allowed',
  'account_on_hold',
  'verification_required',
  'cloud_credential_error',
]);

/** The last resort: some versions tell of an overloaded API in words only. */
const signs: Signs = [
  [/prompt is too long/i, 'prompt_too_long'],
  [/\/login\b|invalid api key/i, 'auth'],
  [/overloaded/i, 'overloaded'],
];

/**
 * `error` is the CLI's own code for what went wrong, if any. The exit code tells nothing. `limits` is what
 * the CLI last told of the account, and `asked` the turn.
 */
export function failed(
  line: ResultLine,
  error: string | null,
  limits: RateLimits | null,
  asked: Turn | null,
): TurnFailed {
  const words = line.result === '' ? (line.errors[0] ?? '') : line.result;
  const reason =
    reasonByStop.get(line.stop_reason ?? '') ??
    reasonBySubtype.get(line.subtype ?? '') ??
    reasonByTerminal.get(line.terminal_reason ?? '') ??
    reasonByError.get(error ?? '') ??
    reasonByStatus.get(line.api_error_status ?? 0) ??
    reasonInWords(words, signs, asked) ??
    'other';
  const message = sentence('the model CLI reports', words);
  if (reason === 'quota') return { type: 'turn-failed', reason, message, quota: quotaOf(line, error, limits, asked) };
  const isOfAccount = reason === 'auth' && refusesAccount(line, error);
  return { type: 'turn-failed', reason, message, ...(isOfAccount && { scope: 'account' }) };
}

/** The program calls each 403 a failed authentication, also one that is about a model or about what a prompt says. */
function refusesAccount({ api_error_status: status }: ResultLine, error: string | null): boolean {
  if (ofAccount.has(error ?? '')) return true;
  return status === 401 || (status == null && error === 'authentication_failed');
}

/** As `ClaudeWriter` names them: it is for the program to repeat that, and it may repeat anything. */
const namedParts = /^[a-z ]{1,40}$/;

/** What the process was told beside its turns has not reached it: its answers would be those to another question. */
export function unheard({ request_id: id, error }: ControlResponse, asked: Turn | null): TurnFailed {
  const what = id !== null && id !== undefined && namedParts.test(id) ? id : 'details';
  const message = sentence(`the model CLI does not take the ${what} of this request`, error ?? '');
  const isOfModel = what === modelSettings && asked !== null && asked.model !== null;
  return { type: 'turn-failed', reason: isOfModel ? 'model_unknown' : 'other', message };
}

const isOutOfCredit = (line: ResultLine, error: string | null) =>
  error === 'billing_error' || line.api_error_status === 402;

/**
 * With an API key the CLI tells of no window: a limit by the minute, which holds for one model, or an empty account. Of a
 * job that names a model, only that may have to be paid for.
 */
function quotaOf(line: ResultLine, error: string | null, limits: RateLimits | null, asked: Turn | null): QuotaRefusal {
  const isOfModel = asked !== null && asked.model !== null;
  if (isOutOfCredit(line, error)) return { scope: isOfModel ? 'model' : 'account', resetsAt: null };
  return limits !== null && isRefusing(limits) ? refusalOf(limits) : { scope: 'model', resetsAt: null };
}

const maxWords = 300;

function sentence(start: string, words: string): string {
  const [firstLine = ''] = words.trim().split('\n');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this removes
  const printable = firstLine.replace(/[\x00-\x1f\x7f-\x9f]/g, '').slice(0, maxWords);
  return printable === '' ? start : `${start}: ${printable}`;
}

/** What a line tells of the account's windows. `status` at the top is about one of them; the others have their own. */
export function quotaReport(limits: RateLimits): QuotaReport {
  const { rateLimitType, unifiedWindows } = limits;
  const told = Object.entries(unifiedWindows ?? {}).map(([name, window]) => windowOf(name, window));
  const isTold = told.some(({ name }) => name === nameOf(rateLimitType ?? ''));
  return {
    type: 'quota-report',
    windows: isTold || !rateLimitType ? told : [...told, windowOf(rateLimitType, limits)],
  };
}

/** Whether the API refuses requests because of this: a closed window may be served beyond its limit. */
export function isRefusing({ status, isUsingOverage }: RateLimits): boolean {
  return status === 'rejected' && isUsingOverage !== true;
}

const ofOneModel: ReadonlySet<string> = new Set(['seven_day_opus', 'seven_day_sonnet', 'seven_day_overage_included']);

/** A refusal without a window comes from a limit by the minute, which the API counts for each model apart. */
export function refusalOf({ rateLimitType, resetsAt }: RateLimits) {
  const isOfModel = rateLimitType == null || ofOneModel.has(rateLimitType);
  return { scope: isOfModel ? 'model' : 'account', resetsAt: epochMs(resetsAt) } as const;
}

type ToldWindow = Pick<RateLimits, 'status' | 'utilization' | 'resetsAt'>;

function windowOf(name: string, { status, utilization, resetsAt }: ToldWindow): QuotaWindow {
  return {
    name: nameOf(name),
    status: status === 'rejected' ? 'rejected' : status === 'allowed_warning' ? 'warning' : 'allowed',
    utilization: utilization ?? null,
    resetsAt: epochMs(resetsAt),
  };
}

function nameOf(name: string): QuotaWindow['name'] {
  return quotaWindowNames.find((known) => known === name) ?? 'other';
}

function epochMs(seconds: number | null | undefined): number | null {
  return seconds == null ? null : seconds * 1000;
}

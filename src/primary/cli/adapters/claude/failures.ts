import type { CliReason, QuotaRefusal } from '../../../../shared/errors.js';
import {
  type QuotaReport,
  type QuotaWindow,
  quotaWindowNames,
  type Turn,
  type TurnFailed,
  type Waiting,
} from '../../contract/adapter.js';
import {
  type FailureTable,
  failedTurn,
  quotaOfModel,
  refusesRequest,
  sentence,
  turnFailed,
  wordsOfApi,
} from '../common/failure.js';
import type { ApiRetry, ControlResponse, RateLimits, ResultLine } from './lines.js';
import { modelSettings } from './writer.js';

const table: FailureTable = {
  codes: [
    ['stop_reason', 'refusal', 'refused'],
    ['subtype', 'error_max_structured_output_retries', 'schema_mismatch'], // the only subtype that names a cause
    ['terminal_reason', 'prompt_too_long', 'prompt_too_long'],
    ['terminal_reason', 'blocking_limit', 'prompt_too_long'], // estimated by the CLI, before any request
    ['error', 'authentication_failed', 'auth', 'account'],
    ['error', 'oauth_org_not_allowed', 'auth', 'account'],
    ['error', 'account_on_hold', 'auth', 'account'],
    ['error', 'verification_required', 'auth', 'account'],
    ['error', 'cloud_credential_error', 'auth', 'account'],
    ['error', 'billing_error', 'quota'],
    ['error', 'rate_limit', 'quota'],
    ['error', 'overloaded', 'overloaded'],
    ['error', 'model_not_found', 'model_unknown'],
    ['error', 'max_output_tokens', 'output_too_large'],
  ],
  words: [
    [/prompt is too long/i, 'prompt_too_long'],
    [/\/login\b|invalid api key/i, 'auth'],
    [/overloaded/i, 'overloaded'], // some versions have no code for this
  ],
};

/**
 * Returns the failure for a result. `error` is the CLI's error code, if any; the exit code has no meaning. `limits` is
 * the last report of the account.
 */
export function failed(
  line: ResultLine,
  error: string | null,
  limits: RateLimits | null,
  turn: Turn | null,
): TurnFailed {
  const { stop_reason, subtype, terminal_reason, api_error_status: status } = line;
  const codes = [...Object.entries({ stop_reason, subtype, terminal_reason, error }), ['status', status] as const];
  const words = line.result === '' ? (line.errors[0] ?? '') : line.result;
  return failedTurn(table, {
    codes,
    words: refusesRequest({ codes }) ? wordsOfApi(words.replace(/^API Error: \d{3} /, '')) : words,
    turn,
    // The CLI reports each 403 as a failed authentication, even if it concerns a model or the content of a prompt.
    isOfRequest: error === 'authentication_failed' && status != null && status !== 401,
    quota: quotaOf(line, error, limits, turn),
  });
}

const waitReasons: ReadonlySet<CliReason> = new Set(['quota', 'overloaded']);

/**
 * Returns the event for a wait because the API is overloaded or limited; null for any other cause, such as a lost
 * connection.
 */
export function waiting(line: ApiRetry, limits: RateLimits | null, turn: Turn | null): Waiting | null {
  const { retry_delay_ms: ms, error, error_status: status } = line;
  const words = `the API of the model failed, and the next retry would be in ${Math.ceil(ms / 1000)} s`;
  const codes = [
    ['error', error],
    ['status', status],
  ] as const;
  const quota = limits !== null && isRefusing(limits) ? refusalOf(limits) : quotaOfModel;
  const failure = failedTurn(table, { codes, words, turn, isOfRequest: false, quota });
  return waitReasons.has(failure.reason) ? { type: 'waiting', ms, failure } : null;
}

/** Form of the request ids of `ClaudeWriter`. The program repeats them, and might write any other text. */
const namedParts = /^[a-z ]{1,40}$/;

/** Returns the failure for rejected settings: the model would answer without them. */
export function rejected({ request_id: id, error }: ControlResponse, turn: Turn | null): TurnFailed {
  const what = id !== null && id !== undefined && namedParts.test(id) ? id : 'details';
  const isOfModel = what === modelSettings && turn !== null && turn.model !== null;
  const message = sentence(`the model CLI does not accept the ${what} of this request`, error ?? '');
  return turnFailed(isOfModel ? 'model_unknown' : 'other', message);
}

const isOutOfCredit = (line: ResultLine, error: string | null) =>
  error === 'billing_error' || line.api_error_status === 402;

/**
 * Returns the exhausted quota. With an API key, the CLI reports no windows: the cause is a limit per minute, which
 * applies to one model, or an account without credit. If the job names a model, perhaps only that model is not paid
 * for.
 */
function quotaOf(line: ResultLine, error: string | null, limits: RateLimits | null, turn: Turn | null): QuotaRefusal {
  const isOfModel = turn !== null && turn.model !== null;
  if (isOutOfCredit(line, error)) return { scope: isOfModel ? 'model' : 'account', resetsAt: null };
  return limits !== null && isRefusing(limits) ? refusalOf(limits) : quotaOfModel;
}

/**
 * Returns the account's windows. The top-level `status` applies to one window; the list gives the status of the others.
 */
export function quotaReport(limits: RateLimits): QuotaReport {
  const { rateLimitType, unifiedWindows } = limits;
  const listed = Object.entries(unifiedWindows ?? {}).map(([name, window]) => windowOf(name, window));
  const isListed = listed.some(({ name }) => name === nameOf(rateLimitType ?? ''));
  return {
    type: 'quota-report',
    windows: isListed || !rateLimitType ? listed : [...listed, windowOf(rateLimitType, limits)],
  };
}

/** Whether the API refuses requests because of this report. With overage, a closed window is still served. */
function isRefusing({ status, isUsingOverage }: RateLimits): boolean {
  return status === 'rejected' && isUsingOverage !== true;
}

const oneModelLimits: ReadonlySet<string> = new Set([
  'seven_day_opus',
  'seven_day_sonnet',
  'seven_day_overage_included',
]);

/**
 * Returns the scope of a refusal. A refusal without a window comes from a limit per minute, which the API counts for
 * each model.
 */
function refusalOf({ rateLimitType, resetsAt }: RateLimits) {
  const isOfModel = rateLimitType == null || oneModelLimits.has(rateLimitType);
  return { scope: isOfModel ? 'model' : 'account', resetsAt: epochMs(resetsAt) } as const;
}

type ReportedWindow = Pick<RateLimits, 'status' | 'utilization' | 'resetsAt'>;

function windowOf(name: string, { status, utilization, resetsAt }: ReportedWindow): QuotaWindow {
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

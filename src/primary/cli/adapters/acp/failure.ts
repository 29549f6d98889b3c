import { z } from 'zod';
import { type CliReason, cliError, type RelayError } from '../../../../shared/errors.js';
import type { Turn, TurnFailed } from '../../contract/adapter.js';
import { reasonByStatus, reasonInWords, type Signs } from '../common/failure.js';
import type { RpcError } from '../common/json-rpc.js';
import { jsonOf } from '../common/lines.js';
import { protocolVersion } from './lines.js';

/** The protocol's own code: authentication required. */
export const unauthenticated = -32000;
/** That of HTTP. */
const unauthorized = 401;

/** JSON-RPC has no codes for the rest: agents pass on the HTTP status of their model's API, as the code or beside it. */
function reasonByCode(code: number, status: number | null): CliReason | undefined {
  if (code === unauthenticated) return 'auth';
  return reasonByStatus.get(code) ?? reasonByStatus.get(status ?? 0);
}

/** The last resort. */
const signs: Signs = [
  [/\b429\b|rate.?limit|quota|RESOURCE_EXHAUSTED|too many requests|credit balance|billing/i, 'quota'],
  [/prompt is too long|context.(length|window)|(maximum|exceeds).{0,40}tokens/i, 'prompt_too_long'],
  [/\b401\b|\b403\b|unauthori[sz]ed|unauthenticated|api.?key|\blog.?in\b|authentication/i, 'auth'],
  [/overloaded|\b503\b|\b529\b|UNAVAILABLE/i, 'overloaded'],
  [
    /model.{0,80}(not found|not supported|does not exist|unknown)|(not found|unknown|invalid).{0,40}model/i,
    'model_unknown',
  ],
];

/**
 * What the agent was at when it reported an error. `opening`: the session; with a turn, its model is in the arguments of
 * the agent. `choosing`: the model of the turn. `asked`: the turn itself.
 */
export type AcpStep = 'opening' | 'choosing' | 'asked';

/**
 * An answer that is an error ends the turn. `asked` is null where the agent has been told nothing of a client. `ways`
 * says how to log in, where that is missing.
 */
export function failedBy(error: RpcError, step: AcpStep, asked: Turn | null, ways = ''): TurnFailed {
  const words = wordsOf(error.message, error.data);
  const coded = reasonByCode(error.code, statusOf(error.data));
  const isOfModel = step !== 'asked' && asked !== null && asked.model !== null;
  const reason = coded ?? (isOfModel ? 'model_unknown' : reasonInWords(words, signs, asked)) ?? 'other';
  const failed = failure(reason, sentence('the model CLI reports', words) + (reason === 'auth' ? ways : ''));
  if (coded === 'quota') return { ...failed, quota: { scope: 'model', resetsAt: null } };
  return refusesAccount(error, step, asked) ? { ...failed, scope: 'account' } : failed;
}

/**
 * Agents also say that they need a login because of what a request says or names. With the name of a provider before it,
 * as in `openai/gpt-5`, a model may have an account of its own.
 */
function refusesAccount({ code, data }: RpcError, step: AcpStep, asked: Turn | null): boolean {
  if (code === unauthenticated) return step === 'opening' && (asked === null || asked.model === null);
  const isRefused = code === unauthorized || statusOf(data) === unauthorized;
  return isRefused && step !== 'choosing' && !(asked?.model?.includes('/') ?? false);
}

export function failure(reason: CliReason, message: string): TurnFailed {
  return { type: 'turn-failed', reason, message };
}

export function errorOf(failed: TurnFailed): RelayError {
  return cliError(failed.reason, failed.message, failed);
}

/** Where a turn ends by another word than `end_turn`; null where it is an answer. */
export function stoppedBy(stopReason: string, hasText: boolean): TurnFailed | null {
  if (stopReason === 'refusal') return failure('refused', 'the model declines to answer');
  if (stopReason === 'max_tokens') {
    return hasText
      ? failure('output_too_large', 'the answer is longer than the model may write')
      : failure('prompt_too_long', 'the prompt is too long for the model');
  }
  if (stopReason === 'max_turn_requests')
    return failure('other', 'the model CLI asked its model too often in one turn');
  if (stopReason === 'cancelled') return failure('other', 'the model CLI gave up the turn');
  return hasText ? null : failure('empty_answer', 'the model CLI ended its turn without an answer');
}

/** Some agents say `Internal error` and put what matters beside it. */
function wordsOf(message: string, data: unknown): string {
  const beside = /^(internal error|invalid params)\.?$/i.test(message.trim())
    ? detailed.safeParse(data).data
    : undefined;
  return ownWordsOf(beside ?? message);
}

const details = z.object({ details: z.string() }).transform((data) => data.details);
const saying = z.object({ message: z.string() }).transform((data) => data.message);
const detailed = z.union([z.string(), details, saying]);

const numbered = z.object({ status: z.number().optional(), statusCode: z.number().optional() });

/** The HTTP status beside an error, where an agent tells it. */
function statusOf(data: unknown): number | null {
  const told = numbered.safeParse(data).data;
  return told?.status ?? told?.statusCode ?? null;
}

const apiError = z.object({ error: z.object({ message: z.string() }) });

/** Some pass on the whole answer of the model's API. */
function ownWordsOf(message: string): string {
  return apiError.safeParse(jsonOf(message)).data?.error.message ?? message;
}

const maxWords = 300;

function sentence(start: string, words: string): string {
  const [firstLine = ''] = words.trim().split('\n');
  const said = printable(firstLine).slice(0, maxWords);
  return said === '' ? start : `${start}: ${said}`;
}

export function printable(words: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this removes
  return words.replace(/[\x00-\x1f\x7f-\x9f]/g, '');
}

export function otherVersion(version: number): TurnFailed {
  const message = `the model CLI speaks version ${version} of the Agent Client Protocol, not ${protocolVersion}`;
  return failure('other', message);
}

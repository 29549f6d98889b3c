import { z } from 'zod';
import { cliError, type RelayError } from '../../../../shared/errors.js';
import type { Turn, TurnFailed } from '../../contract/adapter.js';
import { type FailureTable, failedTurn, quotaOfModel, wordsOfApi } from '../common/failure.js';
import type { RpcError } from '../common/json-rpc.js';

/** The protocol's own code: authentication required. */
export const unauthenticated = -32000;

/** JSON-RPC has no codes for the rest: agents pass on the HTTP status of their model's API, as the code or beside it. */
const table: FailureTable = {
  codes: [['code', unauthenticated, 'auth', 'account']],
  words: [
    [/\b429\b|rate.?limit|quota|RESOURCE_EXHAUSTED|too many requests|credit balance|billing/i, 'quota'],
    [/prompt is too long|context.(length|window)|(maximum|exceeds).{0,40}tokens/i, 'prompt_too_long'],
    [/\b401\b|\b403\b|unauthori[sz]ed|unauthenticated|api.?key|\blog.?in\b|authentication/i, 'auth'],
    [/overloaded|\b503\b|\b529\b|UNAVAILABLE/i, 'overloaded'],
    [
      /model.{0,80}(not found|not supported|does not exist|unknown)|(not found|unknown|invalid).{0,40}model/i,
      'model_unknown',
    ],
  ],
};

/**
 * What the agent was at when it reported an error. `opening`: the session; with a turn, its model is in the arguments of
 * the agent. `choosing`: the model of the turn. `asked`: the turn itself.
 */
export type AcpStep = 'opening' | 'choosing' | 'asked';

/**
 * An answer that is an error ends the turn. `asked` is null where the agent has been told nothing of a client. `ways`
 * says how to log in, where that is missing.
 */
export function failedBy({ code, message, data }: RpcError, step: AcpStep, asked: Turn | null, ways = ''): TurnFailed {
  const isOfModel = step !== 'asked' && asked !== null && asked.model !== null;
  const failed = failedTurn(table, {
    codes: [
      ['code', code],
      ['status', code],
      ['status', statusOf(data)],
    ],
    words: wordsOf(message, data),
    asked,
    uncoded: isOfModel ? 'model_unknown' : undefined,
    isOfRequest: isOfRequest(code, step, asked?.model ?? null),
    quota: quotaOfModel,
  });
  return failed.reason === 'auth' ? { ...failed, message: failed.message + ways } : failed;
}

/**
 * Agents also say that they need a login because of what a request says or names. With the name of a provider before it,
 * as in `openai/gpt-5`, a model may have an account of its own.
 */
function isOfRequest(code: number, step: AcpStep, model: string | null): boolean {
  if (code === unauthenticated) return step !== 'opening' || model !== null;
  return step === 'choosing' || (model?.includes('/') ?? false);
}

export function errorOf(failed: TurnFailed): RelayError {
  return cliError(failed.reason, failed.message, failed);
}

/** Some agents say `Internal error` and put what matters beside it. */
function wordsOf(message: string, data: unknown): string {
  const beside = /^(internal error|invalid params)\.?$/i.test(message.trim())
    ? detailed.safeParse(data).data
    : undefined;
  return wordsOfApi(beside ?? message);
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

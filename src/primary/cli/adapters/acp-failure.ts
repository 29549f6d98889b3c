import { z } from 'zod';
import { type CliReason, cliError, type RelayError } from '../../../shared/errors.js';
import type { TurnFailed } from '../adapter.js';
import { protocolVersion } from './acp-lines.js';
import { reasonByStatus } from './http-status.js';
import type { RpcError } from './json-rpc.js';
import { jsonOf } from './lines.js';

/** The protocol's own code: authentication required. */
const unauthenticated = -32000;

/** JSON-RPC has no codes for the rest: agents pass on the HTTP status of their model's API, as the code or beside it. */
function reasonByCode(code: number, status: number | null): CliReason | undefined {
  if (code === unauthenticated) return 'auth';
  return reasonByStatus.get(code) ?? reasonByStatus.get(status ?? 0);
}

/** The last resort. The first that fits counts. */
const reasonByWords: readonly (readonly [RegExp, CliReason])[] = [
  [/\b429\b|rate.?limit|quota|RESOURCE_EXHAUSTED|too many requests|credit balance|billing/i, 'quota'],
  [/prompt is too long|context.(length|window)|(maximum|exceeds).{0,40}tokens/i, 'prompt_too_long'],
  [/\b401\b|\b403\b|unauthori[sz]ed|unauthenticated|api.?key|log.?in|authentication/i, 'auth'],
  [/overloaded|\b503\b|\b529\b|UNAVAILABLE/i, 'overloaded'],
  [
    /model.{0,80}(not found|not supported|does not exist|unknown)|(not found|unknown|invalid).{0,40}model/i,
    'model_unknown',
  ],
];

/** An answer that is an error ends the turn. */
export function failedBy({ code, message, data }: RpcError): TurnFailed {
  const words = wordsOf(message, data);
  const status = statusOf(data);
  const reason = reasonByCode(code, status) ?? reasonByWords.find(([sign]) => sign.test(words))?.[1] ?? 'other';
  return failure(reason, sentence('the model CLI reports', words));
}

export function failure(reason: CliReason, message: string): TurnFailed {
  const quota = reason === 'quota' && { quota: { scope: 'model', resetsAt: null } as const };
  return { type: 'turn-failed', reason, message, ...quota };
}

export function errorOf({ reason, message }: TurnFailed): RelayError {
  return cliError(reason, message);
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
  const beside = /^internal error\.?$/i.test(message.trim()) ? detailed.safeParse(data).data : undefined;
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
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this removes
  const printable = firstLine.replace(/[\x00-\x1f\x7f-\x9f]/g, '').slice(0, maxWords);
  return printable === '' ? start : `${start}: ${printable}`;
}

export function otherVersion(version: number): TurnFailed {
  const message = `the model CLI speaks version ${version} of the Agent Client Protocol, not ${protocolVersion}`;
  return failure('other', message);
}

import type { QuotaRefusal } from '../../../../shared/errors.js';
import {
  type Decoder,
  type DecoderEvent,
  type Exit,
  type QuotaReport,
  type QuotaWindow,
  quotaWindowNames,
  type Turn,
  type TurnEvent,
  type TurnFailed,
  type Usage,
  unknownUsage,
} from '../../contract/adapter.js';
import { type FailureTable, failedTurn, quotaOfModel, sentence, turnFailed } from '../common/failure.js';
import { JsonLines } from '../common/lines.js';
import {
  type AssistantLine,
  type BlockDelta,
  type ClaudeLine,
  type ControlResponse,
  parseLine,
  type RateLimits,
  type ResultLine,
  type StreamEventLine,
} from './lines.js';
import { type ClaudeWriter, isOfOtherTurn, modelSettings } from './writer.js';

interface ClaudeAnswer {
  /** The sum of the deltas, which may include a broken stream and its repetition. */
  readonly streamed: GrowingText;
  /** The sum of the whole messages: this is the answer. `result` repeats only its last block. */
  readonly said: GrowingText;
  model: string | null;
  /** The CLI's own word for what went wrong. */
  error: string | null;
  hasBegun: boolean;
  /** Whose message the stream events belong to that come now. */
  streaming: 'nothing' | 'own' | 'stray';
  /** A whole message before anything was streamed: late, or of a CLI that could not stream. What comes next shows which. */
  readonly unstreamed: AssistantLine[];
}

/** The model of a message that the CLI has written itself, about an error. */
const synthetic = '<synthetic>';
const outOfTurn: readonly TurnEvent[] = [{ type: 'stray' }];

/** Reads the stdout of one claude process. */
export class ClaudeDecoder implements Decoder<DecoderEvent> {
  readonly #lines = new JsonLines(parseLine, (line) => this.#eventsOf(line));
  readonly read = (chunk: string) => this.#lines.read(chunk);
  readonly exit = (exit: Exit) => this.#lines.exit(exit);
  #answer = emptyAnswer();
  #turn: number | null = null;
  /** What the answers before this turn were made of. Where a version names no turn, an answer that differs is suspect. */
  readonly #habit = { streams: false, speaks: false };
  #spentUsd = 0;
  /** Reported when they change, so a report from turns ago may still hold. */
  #limits: RateLimits | null = null;
  readonly #writer: Pick<ClaudeWriter, 'asked' | 'answered'>;

  /** `writer` is that of the same process. */
  constructor(writer: Pick<ClaudeWriter, 'asked' | 'answered'>) {
    this.#writer = writer;
  }

  get hasBegun(): boolean {
    return this.#answer.hasBegun;
  }

  get isMidAnswer(): boolean {
    const { hasBegun, model, error, unstreamed } = this.#answer;
    return hasBegun || model !== null || error !== null || unstreamed.length > 0;
  }

  begin(turn: number): void {
    this.#turn = turn;
    this.#answer = emptyAnswer();
  }

  #eventsOf(line: ClaudeLine): readonly DecoderEvent[] {
    if (line.type === 'rate_limit_event') return this.#limited(line.rate_limit_info);
    if (line.type === 'control_response') return this.#controlled(line);
    const isNamedOther = isOfOtherTurn(line.user_message_uuid, this.#turn);
    if (line.type === 'stream_event') return this.#streamed(line, isNamedOther);
    if (isNamedOther) return outOfTurn;
    return line.type === 'assistant' ? this.#whole(line) : this.#ended(line);
  }

  #controlled({ response }: Extract<ClaudeLine, { type: 'control_response' }>): readonly DecoderEvent[] {
    return response.subtype === 'error' ? [rejected(response, this.#writer.asked)] : [];
  }

  #limited(limits: RateLimits): readonly DecoderEvent[] {
    this.#limits = limits;
    return [quotaReport(limits)];
  }

  /** Only the start of a message names its turn. */
  #streamed({ event }: StreamEventLine, isNamedOther: boolean): readonly TurnEvent[] {
    if (event.type === 'message_start') return this.#started(event.message.model, isNamedOther);
    const { streaming, streamed } = this.#answer;
    if (streaming === 'stray' || (streaming === 'nothing' && this.#habit.streams)) return outOfTurn;
    if (event.type === 'content_block_delta') return this.#grown(event);
    streamed.pass(event.content_block.type);
    return [];
  }

  #started(model: string, isNamedOther: boolean): readonly TurnEvent[] {
    this.#answer.streaming = isNamedOther ? 'stray' : 'own';
    if (isNamedOther) return outOfTurn;
    this.#answer.model = model;
    return this.#answer.unstreamed.splice(0).length > 0 ? outOfTurn : [];
  }

  #grown({ delta }: BlockDelta): readonly TurnEvent[] {
    this.#answer.hasBegun = true; // not at message_start, which the API may send long before the model's first word
    const text = delta.type === 'text_delta' ? this.#answer.streamed.add(delta.text ?? '') : '';
    return text === '' ? [] : [{ type: 'text-delta', text }];
  }

  #whole(line: AssistantLine): readonly TurnEvent[] {
    const isNamed = line.user_message_uuid != null;
    const isSuspect = this.#habit.streams && this.#answer.streaming !== 'own' && !isNamed;
    if (isSuspect && line.message.model !== synthetic) this.#answer.unstreamed.push(line);
    else this.#said(line);
    return [];
  }

  #said({ message, error }: AssistantLine): void {
    this.#answer.error = error ?? null;
    if (message.model === synthetic) return;
    this.#answer.hasBegun = true;
    this.#answer.model = message.model;
    for (const { type, text } of message.content) {
      if (type === 'text') this.#answer.said.add(text ?? '');
      else this.#answer.said.pass(type);
    }
  }

  #ended(line: ResultLine): readonly TurnEvent[] {
    const costUsd = this.#spend(line.total_cost_usd ?? null);
    if (line.num_turns === 0 && !line.is_error && line.result === '') return [{ type: 'input-taken' }];
    for (const message of this.#answer.unstreamed.splice(0)) this.#said(message);
    const answer = this.#answer;
    if (this.#isSecondResult(line)) return outOfTurn;
    this.#habit.speaks ||= answer.model !== null;
    this.#habit.streams ||= answer.streaming === 'own';
    this.#answer = emptyAnswer();
    const { asked } = this.#writer;
    this.#writer.answered();
    if (line.is_error || line.num_turns === 0) return [failed(line, answer.error, this.#limits, asked)];
    const { model } = answer;
    return [{ type: 'turn-end', text: correction(answer, line), model, usage: usageOf(line, costUsd) }];
  }

  /** A good result of which nothing was said before, from a program that has always said its answers. */
  #isSecondResult({ user_message_uuid: named, is_error, num_turns }: ResultLine): boolean {
    const isGood = !is_error && num_turns > 0;
    return isGood && named == null && this.#turn !== null && this.#habit.speaks && !this.isMidAnswer;
  }

  /** The CLI reports the cost of the whole process so far. */
  #spend(totalUsd: number | null): number | null {
    if (totalUsd === null) return null;
    const costUsd = roundedUsd(Math.max(0, totalUsd - this.#spentUsd));
    this.#spentUsd = totalUsd;
    return costUsd;
  }
}

function emptyAnswer(): ClaudeAnswer {
  const texts = { streamed: new GrowingText(), said: new GrowingText() };
  return { ...texts, model: null, error: null, hasBegun: false, streaming: 'nothing', unstreamed: [] };
}

/** Of an answer with a schema, the value is the whole: the model may have talked before it. */
function correction({ streamed, said }: ClaudeAnswer, { result, structured_output: value }: ResultLine): string | null {
  if (value != null) return valueText(value);
  const whole = said.toString() || result;
  return whole === '' || whole === streamed.toString() ? null : whole;
}

/** Empty where it is nested deeper than the stack: that is checked against the schema like any other answer. */
function valueText(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch {
    return '';
  }
}

/** The difference of two sums has digits without a meaning. */
function roundedUsd(usd: number): number {
  return Math.round(usd * 1e9) / 1e9;
}

function usageOf({ usage }: ResultLine, costUsd: number | null): Usage {
  if (!usage) return { ...unknownUsage, costUsd };
  const { input_tokens: fresh, cache_creation_input_tokens: stored, cache_read_input_tokens: cached } = usage;
  return {
    inputTokens: fresh + stored + cached,
    outputTokens: usage.output_tokens,
    costUsd,
    cacheReadTokens: cached,
    cacheWriteTokens: stored,
  };
}

/** A text that grows block by block. A blank line separates what comes before and after a tool call. */
export class GrowingText {
  #text = '';
  #isAfterTool = false;

  /** Returns what was added to the whole. */
  add(text: string): string {
    if (text === '') return '';
    const grown = this.#isAfterTool && this.#text !== '' ? `\n\n${text}` : text;
    this.#isAfterTool = false;
    this.#text += grown;
    return grown;
  }

  /** Takes note of a block that is no text. */
  pass(type: string): void {
    if (type === 'tool_use') this.#isAfterTool = true;
  }

  toString(): string {
    return this.#text;
  }
}

const table: FailureTable = {
  codes: [
    ['stop_reason', 'refusal', 'refused'],
    ['subtype', 'error_max_structured_output_retries', 'schema_mismatch'], // the only one that says anything
    ['terminal_reason', 'prompt_too_long', 'prompt_too_long'],
    ['terminal_reason', 'blocking_limit', 'prompt_too_long'], // by its own estimate, before any request
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
    [/overloaded/i, 'overloaded'], // some versions have no code for it
  ],
};

/**
 * `error` is the CLI's own code for what went wrong, if any. The exit code has no meaning. `limits` is
 * the last report of the account, and `asked` the turn.
 */
export function failed(
  line: ResultLine,
  error: string | null,
  limits: RateLimits | null,
  asked: Turn | null,
): TurnFailed {
  const { stop_reason, subtype, terminal_reason, api_error_status: status } = line;
  return failedTurn(table, {
    codes: [...Object.entries({ stop_reason, subtype, terminal_reason, error }), ['status', status]],
    words: line.result === '' ? (line.errors[0] ?? '') : line.result,
    asked,
    // The program calls each 403 a failed authentication, also one that is about a model or about what a prompt says.
    isOfRequest: error === 'authentication_failed' && status != null && status !== 401,
    quota: quotaOf(line, error, limits, asked),
  });
}

/** As `ClaudeWriter` names them: it is for the program to repeat that, and it may repeat anything. */
const namedParts = /^[a-z ]{1,40}$/;

/** What was sent to the process beside its turns has not reached it: its answers would be those to another question. */
export function rejected({ request_id: id, error }: ControlResponse, asked: Turn | null): TurnFailed {
  const what = id !== null && id !== undefined && namedParts.test(id) ? id : 'details';
  const isOfModel = what === modelSettings && asked !== null && asked.model !== null;
  const message = sentence(`the model CLI does not take the ${what} of this request`, error ?? '');
  return turnFailed(isOfModel ? 'model_unknown' : 'other', message);
}

const isOutOfCredit = (line: ResultLine, error: string | null) =>
  error === 'billing_error' || line.api_error_status === 402;

/**
 * With an API key the CLI reports no window: a limit by the minute, which holds for one model, or an empty account. Of a
 * job that names a model, only that may have to be paid for.
 */
function quotaOf(line: ResultLine, error: string | null, limits: RateLimits | null, asked: Turn | null): QuotaRefusal {
  const isOfModel = asked !== null && asked.model !== null;
  if (isOutOfCredit(line, error)) return { scope: isOfModel ? 'model' : 'account', resetsAt: null };
  return limits !== null && isRefusing(limits) ? refusalOf(limits) : quotaOfModel;
}

/** What a line reports of the account's windows. `status` at the top is about one of them; the others have their own. */
export function quotaReport(limits: RateLimits): QuotaReport {
  const { rateLimitType, unifiedWindows } = limits;
  const listed = Object.entries(unifiedWindows ?? {}).map(([name, window]) => windowOf(name, window));
  const isListed = listed.some(({ name }) => name === nameOf(rateLimitType ?? ''));
  return {
    type: 'quota-report',
    windows: isListed || !rateLimitType ? listed : [...listed, windowOf(rateLimitType, limits)],
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

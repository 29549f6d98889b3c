import type { CliReason, QuotaRefusal } from '../../../../shared/errors.js';
import {
  type Decoder,
  type DecoderEvent,
  type Exit,
  type QuotaReport,
  type QuotaWindow,
  type RequestKind,
  type Turn,
  type TurnEvent,
  type TurnFailed,
  type Usage,
  unknownUsage,
} from '../../contract/adapter.js';
import {
  type FailureTable,
  failedTurn,
  isKnownStatus,
  quotaOfModel,
  sentence,
  turnFailed,
  wordsOfApi,
} from '../common/failure.js';
import { methodNotFound, type RpcId, rpcFailure } from '../common/json-rpc.js';
import { JsonLines } from '../common/lines.js';
import {
  type CodexError,
  type CodexLimits,
  type CodexMessage,
  type CodexNotification,
  type CodexTokens,
  parseMessage,
} from './lines.js';
import { type CodexThread, requestIds } from './thread.js';

const outOfTurn: readonly TurnEvent[] = [{ type: 'stray' }];
const nothing = Object.freeze<DecoderEvent[]>([]);

/** What a turn may consist of. Anything else is the work of a tool, or a history that is replaced by a summary. */
const harmlessItems: ReadonlySet<string> = new Set(['userMessage', 'agentMessage', 'reasoning']);

type Notified<Method extends CodexNotification['method']> = Extract<CodexNotification, { method: Method }>['params'];

/** Reads the stdout of one codex process. */
export class CodexDecoder implements Decoder<DecoderEvent> {
  readonly #thread: CodexThread;
  readonly #lines = new JsonLines(parseMessage, (message) => this.#eventsOf(message));
  readonly read = (chunk: string) => this.#lines.read(chunk);
  readonly exit = (exit: Exit) => this.#lines.exit(exit);
  #answer = new CodexAnswer();
  #hasBegun = false;
  /** The turn that runs, as the program calls it. */
  #turnId: string | null = null;
  #model: string | null = null;
  /** Of the whole thread: at the end of the turn before, and now. */
  #spent: CodexTokens | null = null;
  #tokens: CodexTokens | null = null;
  #limits: CodexLimits | null = null;

  constructor(thread: CodexThread) {
    this.#thread = thread;
  }

  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  get isMidAnswer(): boolean {
    return this.#hasBegun || this.#turnId !== null;
  }

  begin(): void {
    this.#reset();
  }

  #reset(): void {
    this.#answer = new CodexAnswer();
    this.#hasBegun = false;
    this.#turnId = null;
    this.#spent = this.#tokens;
  }

  #eventsOf(message: CodexMessage): readonly DecoderEvent[] {
    switch (message.type) {
      case 'notification':
        return this.#notified(message.notification);
      case 'request':
        return refused(message);
      case 'error':
        return [this.#rejected(message.id, message.error.message)];
      case 'result':
        return message.id === requestIds.thread ? this.#opened(message.result) : nothing;
    }
  }

  #rejected(id: RpcId | null, words: string): TurnFailed {
    const isOfModel = id === requestIds.thread && this.#thread.asked !== null && this.#thread.asked.model !== null;
    return rejected(isOfModel ? 'model_unknown' : 'other', namesOfRequests.get(id) ?? 'request', words);
  }

  #opened(result: unknown): readonly DecoderEvent[] {
    const text = this.#thread.started(result);
    if (text !== null) return [{ type: 'reply', text }];
    return [turnFailed('other', 'the model CLI can not be kept from files of the host')];
  }

  #notified({ method, params }: CodexNotification): readonly DecoderEvent[] {
    if (method === 'account/rateLimits/updated') return this.#limited(params);
    if (method === 'turn/started') return this.#started(params);
    const turnId = method === 'turn/completed' ? params.turn.id : params.turnId;
    if (turnId !== this.#turnId || params.threadId !== this.#thread.id) return outOfTurn;
    switch (method) {
      case 'item/agentMessage/delta':
        return this.#grown(params);
      case 'item/reasoning/textDelta':
      case 'item/reasoning/summaryTextDelta':
        this.#hasBegun = true;
        return nothing;
      case 'item/started':
        return forbiddenItem(params.item.type);
      case 'item/completed':
        return this.#whole(params);
      case 'thread/tokenUsage/updated':
        this.#tokens = params.tokenUsage.total;
        return nothing;
      case 'model/rerouted':
        this.#model = params.toModel;
        return nothing;
      case 'error':
        return this.#troubled(params);
      case 'turn/completed':
        return this.#ended(params);
    }
  }

  #limited({ rateLimits }: Notified<'account/rateLimits/updated'>): readonly DecoderEvent[] {
    this.#limits = rateLimits;
    return quotaReports(rateLimits);
  }

  #started({ threadId, turn }: Notified<'turn/started'>): readonly DecoderEvent[] {
    if (this.#turnId !== null || threadId !== this.#thread.id) return outOfTurn;
    this.#turnId = turn.id;
    this.#model = this.#thread.model;
    return nothing;
  }

  #grown({ itemId, delta }: Notified<'item/agentMessage/delta'>): readonly DecoderEvent[] {
    this.#hasBegun = true;
    const text = this.#answer.add(itemId, delta);
    return text === '' ? nothing : [{ type: 'text-delta', text }];
  }

  #whole({ item }: Notified<'item/completed'>): readonly DecoderEvent[] {
    if (item.type === 'agentMessage') {
      this.#hasBegun = true;
      this.#answer.complete(item.text ?? '');
    }
    return forbiddenItem(item.type);
  }

  #troubled({ error, willRetry }: Notified<'error'>): readonly DecoderEvent[] {
    const failure = willRetry ? finalError(error, this.#limits, this.#thread.asked) : null;
    return failure === null ? nothing : [failure];
  }

  #ended({ turn }: Notified<'turn/completed'>): readonly DecoderEvent[] {
    const { isEmpty } = this.#answer;
    const text = this.#answer.correction(this.#thread.asksForValue);
    const [model, usage] = [this.#model, usageOf(this.#tokens, this.#spent)];
    this.#reset();
    const { asked } = this.#thread;
    this.#thread.answered();
    if (turn.status !== 'completed') return [failed(turn.error ?? null, this.#limits, asked)];
    return isEmpty ? emptyAnswer : [{ type: 'turn-end', text, model, usage }];
  }
}

/** So it is where the model declines: the program hides from its clients what the model says of that. */
const emptyAnswer: readonly TurnEvent[] = [turnFailed('empty_answer', 'the model has said nothing')];

const namesOfRequests: ReadonlyMap<RpcId | null, string> = new Map([
  [requestIds.initialize, 'greeting of the relay'],
  [requestIds.thread, 'system text or the model of this request'],
  [requestIds.history, 'history of this conversation'],
  [requestIds.turn, 'turn'],
]);

function forbiddenItem(type: string): readonly DecoderEvent[] {
  if (harmlessItems.has(type)) return nothing;
  if (type === 'contextCompaction')
    return [turnFailed('prompt_too_long', 'the conversation no longer fits into the context of the model')];
  const failed = turnFailed('other', 'the model CLI began to do more than to answer');
  return [{ type: 'request-refused', request: 'tool' }, failed];
}

function refused({ id, method }: Extract<CodexMessage, { readonly type: 'request' }>): readonly DecoderEvent[] {
  return [
    { type: 'reply', text: rpcFailure(id, methodNotFound, 'this client gives nothing') },
    { type: 'request-refused', request: kindOf(method) },
  ];
}

function kindOf(method: string): RequestKind {
  if (/approval$/i.test(method)) return 'permission';
  if (method.startsWith('fs/')) return 'files';
  return method === 'item/tool/call' ? 'tool' : 'other';
}

/** The program counts the tokens of the thread. */
function usageOf(total: CodexTokens | null, before: CodexTokens | null): Usage {
  if (total === null || total === before) return unknownUsage;
  const since = (name: keyof CodexTokens) => {
    const count = total[name];
    return count == null ? null : Math.max(0, count - (before?.[name] ?? 0));
  };
  return {
    inputTokens: since('inputTokens'),
    outputTokens: since('outputTokens'),
    costUsd: null,
    cacheReadTokens: since('cachedInputTokens'),
    cacheWriteTokens: since('cacheWriteInputTokens'),
  };
}

/** Owns the text of one answer: a blank line separates the messages of which it consists. */
export class CodexAnswer {
  #streamed = '';
  readonly #said: string[] = [];
  #streaming: string | null = null;

  /** The next piece of a message. Returns what was added to the whole. */
  add(messageId: string, piece: string): string {
    if (piece === '') return '';
    const isNext = this.#streaming !== null && this.#streaming !== messageId;
    const grown = isNext && this.#streamed !== '' ? `\n\n${piece}` : piece;
    this.#streaming = messageId;
    this.#streamed += grown;
    return grown;
  }

  /** A message as a whole. One whose stream broke is never completed, and is no part of the answer. */
  complete(text: string): void {
    if (text !== '') this.#said.push(text);
  }

  get isEmpty(): boolean {
    return this.#streamed === '' && this.#said.length === 0;
  }

  /** The answer, where it differs from what was streamed; else null. A value for a schema is the last message alone. */
  correction(isValue: boolean): string | null {
    const whole = isValue ? (this.#said.at(-1) ?? '') : this.#said.join('\n\n');
    return whole === '' || whole === this.#streamed ? null : whole;
  }
}

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
    [/reason: content_filter/i, 'refused'],
    [/reason: max_output_tokens/i, 'output_too_large'],
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
  const isRefused = /reason: content_filter/i.test(words);
  const mayPass = status === null ? passing.test(words) : !isFinal(status) || isOfWebSocket(status, words);
  return mayPass && !isRefused ? null : failed(error, limits, asked);
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

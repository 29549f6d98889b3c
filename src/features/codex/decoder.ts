import type { z } from 'zod';
import { opening, turnFailed } from '../../primary/cli/adapters/common/failure.js';
import { isObject, JsonLines, jsonOf } from '../../primary/cli/adapters/common/lines.js';
import {
  addedUsage,
  type Decoder,
  type DecoderEvent,
  type Exit,
  type RequestKind,
  type ToolCall,
  type TurnEnd,
  type TurnEvent,
  type TurnFailed,
  type Usage,
  unknownUsage,
} from '../../primary/cli/contract/adapter.js';
import { idleLimitMs } from '../../primary/cli/contract/awaited-step.js';
import { methodNotFound, type RpcId, rpcFailure } from '../protocols/json-rpc.js';
import { earlyEnd, failed, finalError, quotaReports, rejected } from './failures.js';
import {
  type CodexLimits,
  type CodexMessage,
  type CodexNotification,
  type CodexTokens,
  callRequest,
  parseMessage,
} from './lines.js';
import { type CodexThread, isAddition, requestIds } from './thread.js';

const unexpectedOutput: readonly TurnEvent[] = [{ type: 'stray' }];
const nothing = Object.freeze<DecoderEvent[]>([]);

/** Types of items that belong to an answer. Any other is the work of a tool, or a summary that replaces the history. */
const harmlessItems: ReadonlySet<string> = new Set(['userMessage', 'agentMessage', 'reasoning', 'dynamicToolCall']);

type Notified<Method extends CodexNotification['method']> = Extract<CodexNotification, { method: Method }>['params'];

/** Reads the stdout of one codex process. */
export class CodexDecoder implements Decoder<DecoderEvent> {
  readonly #thread: CodexThread;
  readonly #lines = new JsonLines(parseMessage, (message) => this.#eventsOf(message));
  readonly read = (chunk: string) => this.#lines.read(chunk);
  readonly exit = (exit: Exit) => this.#lines.exit(exit);
  #answer = new CodexAnswer();
  #thought = new CodexThought();
  #hasBegun = false;
  #model: string | null = null;
  /** Tokens of the whole thread at the end of the previous turn. */
  #spent: CodexTokens | null = null;
  #tokens: CodexTokens | null = null;
  #limits: CodexLimits | null = null;
  #contextWindow: number | null = null;
  /** Calls of the current message. */
  #calls: ToolCall[] = [];
  /** Whether the program has answered its first request. */
  #isGreeted = false;
  /** Whether the program has reported that the thread is idle, and has not ended the turn. */
  #isIdle = false;
  /** Usage of the API responses in this turn; null if the program does not report it. */
  #used: Usage | null = null;
  /** Whether the program's turn is open and waits for the results of calls. */
  #isHeld = false;
  /** Text that arrived while a message was open: the program drops it if it asks the model again. */
  readonly #held: Notified<'item/agentMessage/delta'>[] = [];
  /** Whether this version shows the API responses, which contain all calls of a message and its end. */
  #isRaw = false;

  constructor(thread: CodexThread) {
    this.#thread = thread;
  }

  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  get awaited() {
    if (this.#thread.currentTurn === null) return null;
    if (this.#isIdle) return { name: 'end of the turn', limitMs: idleLimitMs, late: this.#lostEnd() };
    if (this.#thread.turnId !== null) return null;
    if (this.#thread.id !== null) return opening('turn/start');
    return opening(this.#isGreeted ? 'thread/start' : 'initialize');
  }

  get usedSoFar(): Usage {
    return this.#used ?? usageOf(this.#tokens, this.#spent);
  }

  get isMidAnswer(): boolean {
    return this.#hasBegun || (this.#thread.turnId !== null && !this.#isHeld);
  }

  begin(): void {
    if (!this.#isHeld) this.#reset();
    this.#isHeld = false;
    this.#isIdle = false;
  }

  #reset(): void {
    this.#answer = new CodexAnswer();
    this.#thought = new CodexThought();
    this.#hasBegun = false;
    this.#thread.hasSaid = false;
    this.#isIdle = false;
    this.#held.splice(0);
    this.#thread.openAdditions.clear();
    this.#thread.turnId = null;
    this.#spent = this.#tokens;
    this.#calls = [];
    this.#used = null;
  }

  #eventsOf(message: CodexMessage): readonly DecoderEvent[] {
    if (this.#thread.isInterrupting) return this.#interrupted(message);
    switch (message.type) {
      case 'notification':
        return this.#notified(message.notification);
      case 'raw':
        this.#isRaw = true;
        return nothing;
      case 'request':
        return this.#requested(message);
      case 'error':
        return message.id !== null && isAddition(message.id)
          ? this.#refused(message.id)
          : [this.#rejected(message.id, message.error.message)];
      case 'result':
        return this.#answered(message.id, message.result);
    }
  }

  /** Reads until the end of an interrupted turn; the rest of its answer is dropped. */
  #interrupted(message: CodexMessage): readonly DecoderEvent[] {
    const { turnId, id, interruptionId } = this.#thread;
    if (message.type === 'raw') return nothing;
    if (message.type === 'error' && isAddition(message.id)) return nothing;
    if (message.type === 'request' || message.type === 'error') return [notInterrupted];
    if (message.type === 'result' && (turnId !== null || message.id !== interruptionId)) return nothing;
    if (message.type === 'notification') {
      const { method, params } = message.notification;
      if (method === 'account/rateLimits/updated') return this.#limited(params);
      if (method === 'item/started') return forbiddenItem(params.item.type);
      if (method !== 'turn/completed') return nothing;
      if (params.threadId !== id || params.turn.id !== turnId) return [notInterrupted];
    }
    this.#reset();
    this.#thread.answered();
    this.#thread.isInterrupting = false;
    return ended;
  }

  #answered(id: RpcId, result: unknown): readonly DecoderEvent[] {
    if (id === requestIds.initialize) this.#isGreeted = true;
    if (id === this.#thread.startId) return this.#opened(result);
    // The turn has ended without this message, which would be in the next one.
    if (isAddition(id)) return this.#thread.turnId === null ? unexpectedOutput : nothing;
    if (id !== this.#thread.endId) return nothing;
    const text = this.#thread.ended();
    return text === null ? unexpectedOutput : [{ type: 'reply', text }];
  }

  /**
   * Handles the start of an item. With a message to the turn, the program asks the model again, without what the model has
   * said of a message that is not complete.
   */
  #begun({ type, clientId }: Notified<'item/started'>['item']): readonly DecoderEvent[] {
    if (type !== 'userMessage' || clientId == null) return forbiddenItem(type);
    if (!this.#thread.openAdditions.delete(clientId)) return unexpectedOutput;
    this.#held.splice(0);
    return [{ type: 'message-added', id: clientId }];
  }

  /** After the end of a turn, the program refuses messages for it. */
  #refused(id: RpcId): readonly DecoderEvent[] {
    if (this.#thread.turnId === null) return nothing;
    this.#thread.openAdditions.delete(id);
    const released = this.#thread.openAdditions.size === 0 ? this.#release() : nothing;
    return [{ type: 'message-refused', id: String(id) }, ...released];
  }

  #rejected(id: RpcId | null, words: string): TurnFailed {
    const isStart = id === this.#thread.startId;
    const isOfModel = isStart && this.#thread.currentTurn !== null && this.#thread.currentTurn.model !== null;
    const name = namesOfRequests.get(isStart ? requestIds.thread : id) ?? 'request';
    return rejected(isOfModel ? 'model_unknown' : 'other', name, words);
  }

  #opened(result: unknown): readonly DecoderEvent[] {
    this.#spent = null;
    this.#tokens = null;
    const text = this.#thread.started(result);
    if (this.#thread.isReady) return ended;
    if (text !== null) return [{ type: 'reply', text }];
    return [turnFailed('other', 'the model CLI cannot be isolated from the files of the host')];
  }

  #notified({ method, params }: CodexNotification): readonly DecoderEvent[] {
    if (method === 'account/rateLimits/updated') return this.#limited(params);
    if (method === 'thread/status/changed') return this.#changed(params);
    if (method === 'turn/started') return this.#started(params);
    const turnId = method === 'turn/completed' ? params.turn.id : params.turnId;
    // The program also reports the items of the injected history.
    if (method === 'rawResponseItem/completed' && this.#thread.turnId === null) return nothing;
    if (turnId !== this.#thread.turnId || params.threadId !== this.#thread.id) return unexpectedOutput;
    switch (method) {
      case 'rawResponseItem/completed':
        return this.#called(params.item.call_id, params.item.name, params.item.arguments);
      case 'rawResponse/completed':
        return this.#messageEnded(params.usage ?? null);
      case 'item/agentMessage/delta':
        return this.#grown(params);
      case 'item/reasoning/textDelta':
        this.#hasBegun = true;
        return this.#thought.addPiece('content', params.contentIndex, params.delta);
      case 'item/reasoning/summaryTextDelta':
        this.#hasBegun = true;
        return this.#thought.addPiece('summary', params.summaryIndex, params.delta);
      case 'item/started':
        return this.#begun(params.item);
      case 'item/completed':
        return this.#whole(params);
      case 'thread/tokenUsage/updated':
        this.#tokens = params.tokenUsage.total;
        this.#contextWindow = params.tokenUsage.modelContextWindow ?? null;
        return nothing;
      case 'model/rerouted':
        return this.#named(params.toModel);
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

  /** Notes whether the thread is idle. This version may report it shortly before the end of the turn. */
  #changed({ threadId, status }: Notified<'thread/status/changed'>): readonly DecoderEvent[] {
    if (threadId === this.#thread.id && this.#thread.turnId !== null) this.#isIdle = status.type === 'idle';
    return nothing;
  }

  /** Returns the end of a turn whose end the program has not reported. */
  #lostEnd(): TurnEnd | TurnFailed {
    if (!this.#answer.isWhole) return turnFailed('other', 'the model CLI is idle, but has not ended its turn');
    const text = this.#answer.correction(this.#thread.asksForValue);
    return { type: 'turn-end', text, model: this.#model, usage: this.usedSoFar };
  }

  #started({ threadId, turn }: Notified<'turn/started'>): readonly DecoderEvent[] {
    if (this.#thread.turnId !== null || threadId !== this.#thread.id) return unexpectedOutput;
    this.#thread.turnId = turn.id;
    return this.#named(this.#thread.model);
  }

  #named(model: string | null): readonly DecoderEvent[] {
    this.#model = model;
    return model === null ? nothing : [{ type: 'model-named', model }];
  }

  #called(id: string, nameForCodex: string, input: string): readonly DecoderEvent[] {
    const released = this.#release();
    const name = this.#thread.tools.nameOf(nameForCodex);
    this.#hasBegun = true;
    this.#thread.hasSaid = true;
    this.#calls.push({ id, name, input });
    return [...released, { type: 'call-start', id, name }, { type: 'call-delta', text: input }];
  }

  /**
   * Ends the client's turn after a message with calls. The program answers a call itself if the tool is unknown or the
   * input is not an object; it can then not continue this turn. Neither can it with a message that the model has not got.
   */
  #messageEnded(tokens: CodexTokens | null): readonly DecoderEvent[] {
    const used = tokens && usageOf(tokens, null);
    this.#used = used === null || this.#used === null ? used : addedUsage(this.#used, used);
    const calls = this.#calls;
    if (calls.length === 0) return nothing;
    const { tools, openAdditions } = this.#thread;
    const isSafe = ({ name, input }: ToolCall) => tools.offers(name) && isObject(jsonOf(input));
    const isHeld = openAdditions.size === 0 && calls.every(isSafe) && !tools.calls.areRepeated(calls);
    const text = this.#answer.correction(false);
    const end: TurnEnd = { type: 'turn-end', text, model: this.#model, usage: this.usedSoFar, calls };
    const turnId = this.#thread.turnId;
    this.#reset();
    this.#thread.answered();
    if (!isHeld) return [...unexpectedOutput, end];
    this.#thread.turnId = turnId;
    this.#isHeld = true;
    for (const { id } of calls) tools.calls.called(id);
    return [end];
  }

  #requested(request: Extract<CodexMessage, { readonly type: 'request' }>): readonly DecoderEvent[] {
    const { tools } = this.#thread;
    const { data } = callRequest.safeParse(request.params);
    const isCall = request.method === 'item/tool/call' && data?.turnId === this.#thread.turnId;
    if (!isCall || !tools.offers(tools.nameOf(data.tool))) return refused(request);
    const isTold = this.#isRaw || tools.calls.has(data.callId); // the call may be reported a moment later
    const events = isTold ? nothing : this.#startUnannouncedCall(data);
    const text = tools.calls.requested(data.callId, request.id);
    return text === '' ? events : [...events, { type: 'reply', text }];
  }

  /**
   * Handles a call in a version that does not show the API responses: the message ends with its first call, and further
   * calls are replayed.
   */
  #startUnannouncedCall({ callId, tool, arguments: input }: z.infer<typeof callRequest>): readonly DecoderEvent[] {
    if (this.#isHeld) return unexpectedOutput;
    return [...this.#called(callId, tool, JSON.stringify(input)), ...this.#messageEnded(null)];
  }

  #grown(piece: Notified<'item/agentMessage/delta'>): readonly DecoderEvent[] {
    this.#hasBegun = true;
    this.#thread.hasSaid = true;
    this.#held.push(piece);
    return this.#thread.openAdditions.size > 0 ? nothing : this.#release();
  }

  /** Returns the events of the text that was held back. */
  #release(): readonly DecoderEvent[] {
    const texts = this.#held.splice(0).map(({ itemId, delta }) => this.#answer.addPiece(itemId, delta));
    return texts.flatMap((text) => (text === '' ? [] : [{ type: 'text-delta', text } as const]));
  }

  #whole({ item }: Notified<'item/completed'>): readonly DecoderEvent[] {
    if (item.type === 'reasoning') return this.#thought.complete(item.summary ?? [], item.content ?? []);
    if (item.type !== 'agentMessage') return forbiddenItem(item.type);
    this.#hasBegun = true;
    this.#thread.hasSaid = true;
    const released = this.#release();
    this.#answer.complete(item.text ?? '');
    return released;
  }

  #troubled({ error, willRetry }: Notified<'error'>): readonly DecoderEvent[] {
    const early = earlyEnd(error);
    if (early !== null) return this.#endedEarly(early);
    const failure = willRetry ? finalError(error, this.#limits, this.#thread.currentTurn) : null;
    return failure === null ? nothing : [failure];
  }

  /** With what has streamed. The process ends, because the program asks the API again. */
  #endedEarly(early: NonNullable<ReturnType<typeof earlyEnd>>): readonly DecoderEvent[] {
    const [model, usage, calls] = [this.#model, this.usedSoFar, this.#calls];
    const released = this.#release();
    this.#reset();
    this.#thread.answered();
    const made = calls.length > 0 && { calls };
    return [...released, ...unexpectedOutput, { type: 'turn-end', text: null, model, usage, ...made, ...early }];
  }

  #ended({ turn }: Notified<'turn/completed'>): readonly DecoderEvent[] {
    const early = turn.status === 'completed' ? null : earlyEnd(turn.error);
    if (early !== null) return this.#endedEarly(early);
    const { isEmpty } = this.#answer;
    const text = this.#answer.correction(this.#thread.asksForValue);
    const [model, usage] = [this.#model, this.usedSoFar];
    this.#reset();
    const { currentTurn } = this.#thread;
    this.#thread.answered();
    if (turn.status !== 'completed') return [failed(turn.error ?? null, this.#limits, currentTurn)];
    const window = this.#contextWindow;
    const sizes = window !== null && { sizes: { maxInputTokens: window, maxOutputTokens: null } };
    return isEmpty ? emptyAnswer : [{ type: 'turn-end', text, model, usage, ...sizes }];
  }
}

/** End of an interrupted turn, and of a renewal. */
const ended: readonly DecoderEvent[] = [{ type: 'turn-end', text: null, model: null, usage: unknownUsage }];

const notInterrupted = turnFailed('other', 'the model CLI has not ended an interrupted turn');

/** Failure of a turn without text. The cause may be a refusal, whose text the program hides. */
const emptyAnswer: readonly TurnEvent[] = [turnFailed('empty_answer', 'the model gave no answer')];

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
  const failed = turnFailed('other', 'the model CLI began an action that the service does not allow');
  return [...unexpectedOutput, { type: 'request-refused', request: 'tool' }, failed];
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

/** Returns the usage since `before`, because the program counts the tokens of the whole thread. */
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

/** Owns the text of one answer, with a blank line between its messages. */
class CodexAnswer {
  #streamed = '';
  readonly #messages: string[] = [];
  /** Id of the message that streams; empty between two messages. */
  #streaming: string | null = null;

  /** Adds a piece of a message. Returns the text by which the whole has grown. */
  addPiece(messageId: string, piece: string): string {
    if (piece === '') return '';
    const isNext = this.#streaming !== null && this.#streaming !== messageId;
    const grown = isNext && this.#streamed !== '' ? `\n\n${piece}` : piece;
    this.#streaming = messageId;
    this.#streamed += grown;
    return grown;
  }

  /** Adds a whole message. A message whose stream broke is never completed, and does not belong to the answer. */
  complete(text: string): void {
    if (text !== '') this.#messages.push(text);
    this.#streaming = '';
  }

  /** Whether each message that has streamed is complete. */
  get isWhole(): boolean {
    const whole = this.#messages.join('\n\n');
    return whole !== '' && whole.length >= this.#streamed.length;
  }

  get isEmpty(): boolean {
    return this.#streamed === '' && this.#messages.length === 0;
  }

  /**
   * Returns the answer if it differs from the streamed text, or null. A value for a schema is only the last message.
   */
  correction(isValue: boolean): string | null {
    const whole = isValue ? (this.#messages.at(-1) ?? '') : this.#messages.join('\n\n');
    return whole === '' || whole === this.#streamed ? null : whole;
  }
}

type Kind = 'summary' | 'content';

/**
 * Owns the thought that the program streams: a summary in parts, or the raw thoughts of an open model. If both arrive,
 * the first kind counts.
 */
export class CodexThought {
  #kind: Kind | null = null;
  #part = 0;

  /** Adds a piece, with a blank line between two parts. */
  addPiece(kind: Kind, part: number, piece: string): readonly TurnEvent[] {
    if (piece === '' || (this.#kind !== null && this.#kind !== kind)) return [];
    const isNext = this.#kind !== null && part !== this.#part;
    this.#kind = kind;
    this.#part = part;
    return [{ type: 'thought-delta', text: isNext ? `\n\n${piece}` : piece }];
  }

  /** Ends the thought. Text that was not streamed is sent now. */
  complete(summary: readonly string[], content: readonly string[]): readonly TurnEvent[] {
    const isStreamed = this.#kind !== null;
    this.#kind = null;
    this.#part = 0;
    const text = (summary.length > 0 ? summary : content).join('\n\n');
    const unstreamed = isStreamed || text === '' ? [] : [{ type: 'thought-delta', text } as const];
    return [...unstreamed, { type: 'thought-end' }];
  }
}

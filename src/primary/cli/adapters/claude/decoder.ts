import type {
  Decoder,
  DecoderEvent,
  Exit,
  PassageCited,
  SearchMade,
  ToolCall,
  TurnEnd,
  TurnEvent,
  Usage,
} from '../../contract/adapter.js';
import { type AwaitedStep, type MessageAdded, resultLimitMs } from '../../contract/awaited-step.js';
import { opening, turnFailed } from '../common/failure.js';
import { isObject, JsonLines, jsonOf } from '../common/lines.js';
import { failed, quotaReport, rejected, waiting } from './failures.js';
import { GrowingText } from './growing-text.js';
import { isOfOtherTurn } from './line-ids.js';
import {
  type ApiRetry,
  type AssistantLine,
  type BlockDelta,
  type BlockStart,
  type ClaudeLine,
  type InitLine,
  type MessageDelta,
  type MessageEvent,
  type MessageStart,
  type MessageUsage,
  parseLine,
  type RateLimits,
  type ResultLine,
} from './lines.js';
import { callEvents, endOf, isLastText, StreamedMessage, stopSequenceOf } from './message.js';
import { isOfRewinding } from './rewinding.js';
import { nameForClient } from './tool-server.js';
import { added, noTokens, usageOf } from './usage.js';
import { type ClaudeWriter, thoughtSettings } from './writer.js';

/** Line with an event of a message. */
type StreamLine = Extract<ClaudeLine, { readonly type: 'stream_event' }>;

interface ClaudeAnswer {
  /** Sum of the deltas, except those after a broken message. */
  readonly streamed: GrowingText;
  /** Sum of the whole messages, which is the answer. The line `result` repeats only the last block. */
  readonly wholeText: GrowingText;
  model: string | null;
  /** Error code of the CLI. */
  error: string | null;
  hasBegun: boolean;
  /** Origin of the stream events that arrive now: this turn or another one. */
  streaming: 'nothing' | 'own' | 'stray';
  /**
   * Whole messages that arrived before any stream event. They are late, or the CLI could not stream; the next line
   * shows which.
   */
  readonly unstreamed: AssistantLine[];
  /** Usage of all messages of this answer so far. */
  used: MessageUsage;
  /** Message that streams, or the last one. */
  message: StreamedMessage;
  /**
   * Whether a message has ended without its `message_delta`. `wholeText` then has the part that the CLI has kept, and
   * nothing more is streamed.
   */
  isBroken: boolean;
  /** Thought that streams, with its signature once known. */
  thought: { signature?: string } | null;
}

/** Native tool of the CLI for an answer with a schema. */
const ownTool = 'StructuredOutput';

/** Model name in messages that the CLI itself writes about errors. */
const synthetic = '<synthetic>';
const unexpectedOutput: readonly TurnEvent[] = [{ type: 'stray' }];

type WriterState = Pick<
  ClaudeWriter,
  'currentTurn' | 'answered' | 'noteModel' | 'tools' | 'searches' | 'rewinding' | 'hasCitations'
>;

/** Line during a rewinding. */
interface RewindingLine {
  readonly type: 'rewinding';
  readonly text: string;
  /** End of an interrupted turn. */
  readonly result: ResultLine | null;
}

/** Reads the stdout of one claude process. */
export class ClaudeDecoder implements Decoder<DecoderEvent> {
  readonly #lines = new JsonLines(
    (text) => this.#parse(text),
    (line) => this.#eventsOf(line),
  );
  readonly read = (chunk: string) => this.#lines.read(chunk);
  readonly exit = (exit: Exit) => this.#lines.exit(exit);
  #answer = emptyAnswer();
  #turn: number | null = null;
  /** Kinds of lines in earlier answers. If a version does not name turns, an answer without them is suspect. */
  readonly #habit = { streams: false, speaks: false };
  #spentUsd = 0;
  /** Tokens that the messages of this turn have reported. */
  #usedSoFar: Usage | null = null;
  /** Last report of the rate limits. The CLI reports only changes, so it may stem from an earlier turn. */
  #limits: RateLimits | null = null;
  /** Whether the client's turn has ended before the CLI's turn, and no other has begun. */
  #isAnswered = false;
  /** Whether the CLI has written a line. On a busy machine, its start alone takes many seconds. */
  #hasWritten = false;
  /** Whether the CLI has written a line about this turn, which it does before it requests the model. */
  #isTaken = false;
  readonly #writer: WriterState;
  readonly #hasOwnTools: boolean;
  /**
   * State of a turn of the CLI that covers several turns of the client: `waiting` for the results of calls, or `going`
   * on with them.
   */
  #loop: 'none' | 'waiting' | 'going' = 'none';

  /**
   * `writer` belongs to the same process. `hasOwnTools`: whether the CLI may run native tools that the operator has
   * enabled.
   */
  constructor(writer: WriterState, hasOwnTools = false) {
    this.#writer = writer;
    this.#hasOwnTools = hasOwnTools;
  }

  get hasBegun(): boolean {
    return this.#answer.hasBegun;
  }

  get awaited() {
    // Servers of the operator's tools may need longer.
    if (this.#writer.currentTurn === null || this.#hasOwnTools) return null;
    if (this.#isTaken) return this.#lateEnd();
    return opening(this.#hasWritten ? 'prompt' : 'start');
  }

  get usedSoFar(): Usage | null {
    return this.#usedSoFar;
  }

  get isMidAnswer(): boolean {
    const { hasBegun, model, error, unstreamed } = this.#answer;
    const hasAnswer = hasBegun || model !== null || error !== null || unstreamed.length > 0;
    return hasAnswer || this.#writer.searches.additions.isOpen;
  }

  /** Begins a turn. A turn with results continues the CLI's open turn, whose lines keep their number. */
  begin(turn: number): void {
    this.#isTaken = this.#loop === 'waiting'; // the CLI writes nothing about results
    if (this.#loop !== 'waiting') this.#turn = turn;
    this.#loop = this.#loop === 'waiting' ? 'going' : 'none';
    this.#answer = emptyAnswer();
    this.#isAnswered = false;
    this.#usedSoFar = null;
  }

  #parse(text: string): ClaudeLine | SearchMade | MessageAdded | RewindingLine | null {
    const { searches, rewinding } = this.#writer;
    const line = searches.readLine(text) ?? searches.additions.readLine(text) ?? parseLine(text);
    return rewinding.isOpen && line?.type !== 'rate_limit_event'
      ? { type: 'rewinding', text, result: line?.type === 'result' ? line : null }
      : line;
  }

  #rewound({ text, result }: RewindingLine): readonly DecoderEvent[] {
    if (result !== null) {
      this.#spend(result.total_cost_usd ?? null);
      this.#answer = emptyAnswer();
      this.#writer.answered();
    }
    return this.#writer.rewinding.readLine(text);
  }

  #eventsOf(line: ClaudeLine | SearchMade | MessageAdded | RewindingLine): readonly DecoderEvent[] {
    this.#hasWritten = true;
    if (line.type !== 'control_response' && line.type !== 'control_request') this.#isTaken = true;
    if (line.type === 'search' || line.type === 'message-added') return [line];
    if (line.type === 'rewinding') return this.#rewound(line);
    if (line.type === 'rate_limit_event') return this.#limited(line.rate_limit_info);
    if (line.type === 'control_response') return this.#controlled(line);
    if (line.type === 'control_request')
      return this.#writer.searches.decide(line) ?? this.#writer.tools.requested(line);
    if (line.type === 'system') return line.subtype === 'init' ? this.#checkTools(line) : this.#retries(line);
    const isStart = line.type === 'stream_event' && line.event.type === 'message_start';
    const late: readonly DecoderEvent[] = isStart && this.#isAnswered ? [{ type: 'late-message' }] : [];
    return [...late, ...this.#messageEvents(line)];
  }

  #messageEvents(line: StreamLine | AssistantLine | ResultLine): readonly DecoderEvent[] {
    // A whole message repeats the text that has already streamed.
    if (this.#loop === 'waiting') return line.type === 'assistant' ? [] : unexpectedOutput;
    const isNamedOther = isOfOtherTurn(line.user_message_uuid, this.#turn);
    if (line.type === 'stream_event') return this.#streamed(line.event, isNamedOther);
    if (isNamedOther) return unexpectedOutput;
    return line.type === 'assistant' ? this.#whole(line) : this.#ended(line);
  }

  #controlled({ response }: Extract<ClaudeLine, { type: 'control_response' }>): readonly DecoderEvent[] {
    if (isOfRewinding(response.request_id)) return unexpectedOutput; // late, or a second answer
    // A version that does not know how to show thoughts reports an error, and answers anyway.
    if (response.subtype !== 'error' || response.request_id === thoughtSettings) return [];
    return [rejected(response, this.#writer.currentTurn)];
  }

  /**
   * Fails the turn if the CLI has dropped a tool that it cannot use, because the model would answer without it, or if it
   * has another tool than the web search of the turn.
   */
  #checkTools(line: InitLine): readonly TurnEvent[] {
    const fault = this.#writer.searches.faultOf(line.tools);
    if (fault !== null) return [turnFailed('other', fault)];
    const names = this.#writer.tools.missingFrom(line);
    if (names.length === 0) return [];
    return [
      turnFailed('request_refused', `the model CLI does not accept these tools: ${names.slice(0, 5).join(', ')}`),
    ];
  }

  /** Handles a retry of the CLI, which repeats a message that has begun. */
  #retries(line: ApiRetry): readonly DecoderEvent[] {
    this.#answer.isBroken ||= this.#answer.hasBegun && this.#answer.message.stop === null;
    const waits = waiting(line, this.#limits, this.#writer.currentTurn);
    return waits === null || this.#writer.currentTurn === null ? [] : [waits];
  }

  #limited(limits: RateLimits): readonly DecoderEvent[] {
    this.#limits = limits;
    return [quotaReport(limits)];
  }

  /** Handles a stream event. Only the start of a message names its turn. */
  #streamed(event: MessageEvent, isNamedOther: boolean): readonly TurnEvent[] {
    if (event.type === 'message_start') return this.#started(event.message, isNamedOther);
    const { streaming } = this.#answer;
    const isStray = streaming === 'stray' || (streaming === 'nothing' && this.#habit.streams);
    switch (event.type) {
      case 'content_block_delta':
        return isStray ? unexpectedOutput : this.#grown(event);
      case 'content_block_start':
        return isStray ? unexpectedOutput : [...this.#thoughtEnded(), ...this.#blockStarted(event)];
      case 'content_block_stop':
        return isStray ? [] : [...this.#thoughtEnded(), ...this.#blockEnded()];
      case 'message_delta':
        return isStray ? [] : this.#messageEnds(event);
      case 'message_stop':
        return isStray ? [] : this.#messageEnded();
    }
  }

  #started({ model, usage }: MessageStart['message'], isNamedOther: boolean): readonly TurnEvent[] {
    this.#answer.streaming = isNamedOther ? 'stray' : 'own';
    if (isNamedOther) return unexpectedOutput;
    this.#writer.noteModel(model);
    Object.assign(this.#answer, { model, message: new StreamedMessage(), thought: null });
    if (usage) this.#use({ ...usage, output_tokens: 0 });
    const isLate = this.#answer.unstreamed.splice(0).length > 0;
    return [...(isLate ? unexpectedOutput : []), { type: 'model-named', model }];
  }

  #blockStarted({ content_block: { type, id, name, thinking, data } }: BlockStart): readonly TurnEvent[] {
    const answer = this.#answer;
    if (type === 'thinking') return this.#thoughtGrown(thinking ?? '');
    if (type === 'redacted_thinking') return data == null ? [] : [{ type: 'thought-end', redacted: data }];
    answer.streamed.pass(type);
    if (type === 'text') return this.#cited(null);
    if (type !== 'tool_use') return [];
    if (!this.#isOfClient(name ?? '') || id == null || name == null) answer.message.startOwnCall(name === ownTool);
    else answer.message.startCall(id, nameForClient(name));
    return [];
  }

  /** Ends a block. A call is sent when it is complete; a truncated call is dropped. */
  #blockEnded(): readonly TurnEvent[] {
    const call = this.#answer.message.endBlock();
    if (call === null) return [];
    this.#answer.hasBegun = true;
    if (this.#writer.tools.offers(call.name)) this.#writer.tools.calls.called(call.id);
    return this.#answer.isBroken ? [] : callEvents(call);
  }

  /**
   * Whether the client must answer a call. A call of an unknown tool is a mistake of the model, unless the CLI has
   * native tools.
   */
  #isOfClient(name: string): boolean {
    if (this.#writer.currentTurn?.offer === undefined || name === ownTool) return false;
    return this.#writer.tools.offers(nameForClient(name)) || !this.#hasOwnTools;
  }

  #grown({ delta }: BlockDelta): readonly TurnEvent[] {
    this.#answer.hasBegun = true; // not at message_start, which may come long before the model's first word
    if (delta.thinking != null) return this.#thoughtGrown(delta.thinking);
    if (delta.signature != null) {
      if (this.#answer.thought !== null) this.#answer.thought.signature = delta.signature;
      return [];
    }
    if (delta.citation != null) return this.#cited(delta.citation);
    const { message, streamed, isBroken } = this.#answer;
    message.addInput(delta.partial_json ?? '');
    const words = delta.type === 'text_delta' ? (delta.text ?? '') : '';
    message.hasText ||= words !== '';
    const text = isBroken ? '' : streamed.addText(words);
    return text === '' ? [] : [{ type: 'text-delta', text }];
  }

  /** Reports a cited passage, or the start of a block of text (null). Without documents to cite, blocks do not matter. */
  #cited(passage: PassageCited['passage']): readonly TurnEvent[] {
    return this.#writer.hasCitations && !this.#answer.isBroken ? [{ type: 'passage', passage }] : [];
  }

  #thoughtGrown(text: string): readonly TurnEvent[] {
    this.#answer.thought ??= {};
    return text === '' || this.#answer.isBroken ? [] : [{ type: 'thought-delta', text }];
  }

  #thoughtEnded(): readonly TurnEvent[] {
    const { thought, isBroken } = this.#answer;
    this.#answer.thought = null;
    return thought === null || isBroken ? [] : [{ type: 'thought-end', ...thought }];
  }

  #messageEnds({ delta, usage }: MessageDelta): readonly TurnEvent[] {
    this.#answer.message.endMessage(delta);
    const output_tokens = usage?.output_tokens ?? 0;
    this.#use({ ...noTokens, output_tokens });
    // The CLI requests the rest of a cut answer as soon as the message has ended.
    return endOf(this.#answer.message)?.details.isCutShort === true ? this.#messageEnded() : [];
  }

  #use(usage: MessageUsage): void {
    this.#answer.used = added(this.#answer.used, usage);
    this.#usedSoFar = usageOf(this.#answer.used, null);
  }

  /** Ends the client's turn after a message with calls. The CLI keeps its turn open until it gets the results. */
  #messageEnded(): readonly TurnEvent[] {
    const { message, used, model, isBroken, wholeText } = this.#answer;
    if (message.stop === null) return this.#messageBroken();
    const ended = endOf(message);
    if (ended === null) return [];
    const piece = ended.details.isCutShort ? message.cutValue : null;
    const text = piece ?? (isBroken ? wholeText.toString() : null);
    const end: TurnEnd = { type: 'turn-end', text, model, usage: usageOf(used, null), ...ended.details };
    this.#endTurn();
    if (!ended.isLive || !this.#isHeld(end.calls ?? [])) return [...unexpectedOutput, end];
    this.#loop = 'waiting';
    return [end];
  }

  /**
   * Handles a lost connection to the API. The CLI repeats the message or lets the model continue it; but it would also
   * run calls of the broken message and wait for their results.
   */
  #messageBroken(): readonly TurnEvent[] {
    this.#answer.isBroken = true;
    if (!this.#answer.message.hasClientCall) return [];
    this.#endTurn();
    return [
      ...unexpectedOutput,
      turnFailed('answer_broken', "the connection to the model's API was lost during a tool call"),
    ];
  }

  /**
   * Whether the CLI waits for the results of all calls. It answers a call itself if the tool is unknown or the input is
   * not an object; the process can then not continue this turn.
   */
  #isHeld(calls: readonly ToolCall[]): boolean {
    const { tools } = this.#writer;
    const isSafe = ({ name, input }: ToolCall) => tools.offers(name) && isObject(jsonOf(input));
    return calls.every(isSafe) && !tools.calls.areRepeated(calls);
  }

  #endTurn(): void {
    this.#habit.speaks = true;
    this.#habit.streams = true;
    this.#isAnswered = true;
    this.#answer = emptyAnswer();
    this.#writer.answered();
  }

  /** Returns the step between a message that is the whole answer and its `result`; null after any other message. */
  #lateEnd(): AwaitedStep<TurnEnd> | null {
    const { message, used, model, isBroken, wholeText } = this.#answer;
    if (!isLastText(message) || this.#writer.currentTurn?.schema != null) return null;
    const text = isBroken ? wholeText.toString() : null;
    const late: TurnEnd = { type: 'turn-end', text, model, usage: usageOf(used, null), ...stopSequenceOf(message) };
    return { name: 'end of the turn', limitMs: resultLimitMs, late };
  }

  #whole(line: AssistantLine): readonly TurnEvent[] {
    const isNamed = line.user_message_uuid != null;
    const isSuspect = this.#habit.streams && this.#answer.streaming !== 'own' && !isNamed;
    if (isSuspect && line.message.model !== synthetic) this.#answer.unstreamed.push(line);
    else this.#recordMessage(line);
    return [];
  }

  #recordMessage({ message, error }: AssistantLine): void {
    this.#answer.error = error ?? null;
    if (message.model === synthetic) return;
    this.#answer.hasBegun = true;
    this.#answer.model = message.model;
    for (const { type, text } of message.content) {
      if (type === 'text') this.#answer.wholeText.addText(text ?? '');
      else this.#answer.wholeText.pass(type);
    }
  }

  #ended(line: ResultLine): readonly TurnEvent[] {
    const costUsd = this.#spend(line.total_cost_usd ?? null);
    if (line.num_turns === 0 && !line.is_error && line.result === '') return [{ type: 'input-taken' }];
    for (const message of this.#answer.unstreamed.splice(0)) this.#recordMessage(message);
    const answer = this.#answer;
    if (this.#isSecondResult(line)) return unexpectedOutput;
    this.#habit.speaks ||= answer.model !== null;
    this.#habit.streams ||= answer.streaming === 'own';
    this.#answer = emptyAnswer();
    const { currentTurn: turn } = this.#writer;
    this.#writer.answered();
    // Usage that counts if the turn fails.
    this.#usedSoFar = usageOf(answer.used === noTokens ? line.usage : answer.used, costUsd || null);
    if (line.is_error || line.num_turns === 0) return [failed(line, answer.error, this.#limits, turn)];
    const { model, used } = answer;
    // The CLI reports all rounds of a loop together, so a round uses its own messages.
    const usage = usageOf(this.#loop === 'none' ? line.usage : used, costUsd);
    const stopped = stopSequenceOf(answer.message);
    return [{ type: 'turn-end', text: correction(answer, line), model, usage, ...stopped, ...sizesOf(line, model) }];
  }

  /** Whether a good result has no message before it, although this process has sent one with every answer. */
  #isSecondResult({ user_message_uuid: named, is_error, num_turns }: ResultLine): boolean {
    const isGood = !is_error && num_turns > 0;
    return isGood && named == null && this.#turn !== null && this.#habit.speaks && !this.isMidAnswer;
  }

  /** Returns the cost of this turn. The CLI reports the total of the process. */
  #spend(totalUsd: number | null): number | null {
    if (totalUsd === null) return null;
    const costUsd = roundedUsd(Math.max(0, totalUsd - this.#spentUsd));
    this.#spentUsd = totalUsd;
    return costUsd;
  }
}

function emptyAnswer(): ClaudeAnswer {
  const texts = { streamed: new GrowingText(), wholeText: new GrowingText() };
  const message = { used: noTokens, message: new StreamedMessage(), isBroken: false, thought: null };
  return { ...texts, ...message, model: null, error: null, hasBegun: false, streaming: 'nothing', unstreamed: [] };
}

/**
 * Returns the answer if it differs from the streamed text; else null. With a schema, the value alone is the answer,
 * without text before it.
 */
function correction(
  { streamed, wholeText }: ClaudeAnswer,
  { result, structured_output: value }: ResultLine,
): string | null {
  if (value != null) return valueText(value);
  const whole = wholeText.toString() || result;
  return whole === '' || whole === streamed.toString() ? null : whole;
}

/**
 * Returns the value as JSON; empty if it is nested too deeply for the stack. The result is checked against the schema
 * like any other answer.
 */
function valueText(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch {
    return '';
  }
}

/**
 * Returns the limits of the model that has answered, which may add a date to the requested name. The line also has
 * models that only served the CLI itself.
 */
function sizesOf({ modelUsage }: ResultLine, model: string | null): Pick<TurnEnd, 'sizes'> {
  const models = Object.entries(modelUsage ?? {});
  const named = models.find(([name]) => name === model) ?? models.find(([name]) => model?.startsWith(`${name}-`));
  const [, used] = named ?? (models.length === 1 ? models[0] : undefined) ?? [];
  if (used === undefined) return {};
  const { contextWindow = null, maxOutputTokens = null } = used;
  return { sizes: { maxInputTokens: contextWindow, maxOutputTokens } };
}

/** Rounds a difference of two sums, whose last digits are meaningless. */
function roundedUsd(usd: number): number {
  return Math.round(usd * 1e9) / 1e9;
}

import {
  type Decoder,
  type DecoderEvent,
  type Exit,
  type ToolCall,
  type TurnEnd,
  type TurnEvent,
  type Usage,
  unknownUsage,
} from '../../contract/adapter.js';
import { turnFailed } from '../common/failure.js';
import { isObject, JsonLines, jsonOf } from '../common/lines.js';
import { failed, quotaReport, rejected, waiting } from './failures.js';
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
import { callEvents, endOf, StreamedMessage } from './message.js';
import { nameForClient } from './tool-server.js';
import { type ClaudeWriter, isOfOtherTurn, thoughtSettings } from './writer.js';

interface ClaudeAnswer {
  /** The sum of the deltas; what comes after a broken message is left out. */
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
  /** Of all messages of this answer, as far as they have come. */
  used: MessageUsage;
  /** The message that streams, or the last one. */
  message: StreamedMessage;
  /** A message has ended without its `message_delta`: `said` has what the CLI kept of it, and nothing more is streamed. */
  isBroken: boolean;
  /** The thought that streams, as far as its signature is known. */
  thought: { signature?: string } | null;
}

/** The CLI's own tool for an answer with a schema. */
const ownTool = 'StructuredOutput';

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
  /** The tokens that the messages of this turn have reported. */
  #usedSoFar: Usage | null = null;
  /** Reported when they change, so a report from turns ago may still hold. */
  #limits: RateLimits | null = null;
  readonly #writer: Pick<ClaudeWriter, 'asked' | 'answered' | 'tools'>;
  readonly #hasOwnTools: boolean;
  /** In a loop, the turn of the CLI goes on when it gets the results of the calls; `waiting` until then. */
  #loop: 'none' | 'waiting' | 'going' = 'none';

  /** `writer` is that of the same process. `hasOwnTools`: the CLI may run tools that the operator has opened. */
  constructor(writer: Pick<ClaudeWriter, 'asked' | 'answered' | 'tools'>, hasOwnTools = false) {
    this.#writer = writer;
    this.#hasOwnTools = hasOwnTools;
  }

  get hasBegun(): boolean {
    return this.#answer.hasBegun;
  }

  get usedSoFar(): Usage | null {
    return this.#usedSoFar;
  }

  get isMidAnswer(): boolean {
    const { hasBegun, model, error, unstreamed } = this.#answer;
    return hasBegun || model !== null || error !== null || unstreamed.length > 0;
  }

  /** A turn with results goes on with the CLI's own turn, whose lines keep its number. */
  begin(turn: number): void {
    if (this.#loop !== 'waiting') this.#turn = turn;
    this.#loop = this.#loop === 'waiting' ? 'going' : 'none';
    this.#answer = emptyAnswer();
    this.#usedSoFar = null;
  }

  #eventsOf(line: ClaudeLine): readonly DecoderEvent[] {
    if (line.type === 'rate_limit_event') return this.#limited(line.rate_limit_info);
    if (line.type === 'control_response') return this.#controlled(line);
    if (line.type === 'control_request') return this.#writer.tools.requested(line);
    if (line.type === 'system') return line.subtype === 'init' ? this.#checkTools(line) : this.#retries(line);
    if (this.#loop === 'waiting') return line.type === 'assistant' ? [] : outOfTurn; // the message has been read as it streamed
    const isNamedOther = isOfOtherTurn(line.user_message_uuid, this.#turn);
    if (line.type === 'stream_event') return this.#streamed(line.event, isNamedOther);
    if (isNamedOther) return outOfTurn;
    return line.type === 'assistant' ? this.#whole(line) : this.#ended(line);
  }

  #controlled({ response }: Extract<ClaudeLine, { type: 'control_response' }>): readonly DecoderEvent[] {
    if (response.subtype !== 'error' || response.request_id === thoughtSettings) return []; // a version without them answers all the same
    return [rejected(response, this.#writer.asked)];
  }

  /** The CLI drops a tool that it cannot take, and the model would answer without it. */
  #checkTools(line: InitLine): readonly TurnEvent[] {
    const names = this.#writer.tools.missingFrom(line);
    if (names.length === 0) return [];
    return [turnFailed('request_refused', `the model CLI does not take these tools: ${names.slice(0, 5).join(', ')}`)];
  }

  /** A message that has begun is repeated. */
  #retries(line: ApiRetry): readonly DecoderEvent[] {
    this.#answer.isBroken ||= this.#answer.hasBegun && this.#answer.message.stop === null;
    const waits = waiting(line, this.#limits, this.#writer.asked);
    return waits === null || this.#writer.asked === null ? [] : [waits];
  }

  #limited(limits: RateLimits): readonly DecoderEvent[] {
    this.#limits = limits;
    return [quotaReport(limits)];
  }

  /** Only the start of a message names its turn. */
  #streamed(event: MessageEvent, isNamedOther: boolean): readonly TurnEvent[] {
    if (event.type === 'message_start') return this.#started(event.message, isNamedOther);
    const { streaming } = this.#answer;
    const isStray = streaming === 'stray' || (streaming === 'nothing' && this.#habit.streams);
    switch (event.type) {
      case 'content_block_delta':
        return isStray ? outOfTurn : this.#grown(event);
      case 'content_block_start':
        return isStray ? outOfTurn : [...this.#thoughtEnded(), ...this.#blockStarted(event)];
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
    if (isNamedOther) return outOfTurn;
    Object.assign(this.#answer, { model, message: new StreamedMessage(), thought: null });
    if (usage) this.#use({ ...usage, output_tokens: 0 });
    const isLate = this.#answer.unstreamed.splice(0).length > 0;
    return [...(isLate ? outOfTurn : []), { type: 'model-named', model }];
  }

  #blockStarted({ content_block: { type, id, name, thinking, data } }: BlockStart): readonly TurnEvent[] {
    const answer = this.#answer;
    if (type === 'thinking') return this.#thoughtGrown(thinking ?? '');
    if (type === 'redacted_thinking') return data == null ? [] : [{ type: 'thought-end', redacted: data }];
    answer.streamed.pass(type);
    if (type !== 'tool_use') return [];
    if (!this.#isOfClient(name ?? '') || id == null || name == null) answer.message.startOwnCall();
    else answer.message.startCall(id, nameForClient(name));
    return [];
  }

  /** A call is sent when it is complete: one that is cut is no call. */
  #blockEnded(): readonly TurnEvent[] {
    const call = this.#answer.message.endBlock();
    if (call === null) return [];
    this.#answer.hasBegun = true;
    if (this.#writer.tools.offers(call.name)) this.#writer.tools.calls.called(call.id);
    return this.#answer.isBroken ? [] : callEvents(call);
  }

  /** A name that nobody offered is a mistake of the model, unless the CLI has tools of its own. */
  #isOfClient(name: string): boolean {
    if (this.#writer.asked?.offer === undefined || name === ownTool) return false;
    return this.#writer.tools.offers(nameForClient(name)) || !this.#hasOwnTools;
  }

  #grown({ delta }: BlockDelta): readonly TurnEvent[] {
    this.#answer.hasBegun = true; // not at message_start, which the API may send long before the model's first word
    if (delta.thinking != null) return this.#thoughtGrown(delta.thinking);
    if (delta.signature != null) {
      if (this.#answer.thought !== null) this.#answer.thought.signature = delta.signature;
      return [];
    }
    const { message, streamed, isBroken } = this.#answer;
    message.addInput(delta.partial_json ?? '');
    const words = delta.type === 'text_delta' ? (delta.text ?? '') : '';
    message.hasText ||= words !== '';
    const text = isBroken ? '' : streamed.add(words);
    return text === '' ? [] : [{ type: 'text-delta', text }];
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
    this.#answer.message.end(delta);
    const output_tokens = usage?.output_tokens ?? 0;
    this.#use({ ...noTokens, output_tokens });
    return [];
  }

  #use(usage: MessageUsage): void {
    this.#answer.used = added(this.#answer.used, usage);
    this.#usedSoFar = usageOf(this.#answer.used, null);
  }

  /** With calls, the turn ends here for the client: the CLI holds its own turn open until it has the results. */
  #messageEnded(): readonly TurnEvent[] {
    const { message, used, model, isBroken, said } = this.#answer;
    if (message.stop === null) return this.#messageBroken();
    const ended = endOf(message);
    if (ended === null) return [];
    const text = isBroken ? said.toString() : null;
    const end: TurnEnd = { type: 'turn-end', text, model, usage: usageOf(used, null), ...ended.details };
    this.#endTurn();
    if (!ended.isLive || !this.#isHeld(end.calls ?? [])) return [...outOfTurn, end];
    this.#loop = 'waiting';
    return [end];
  }

  /**
   * The connection to the API was lost. The CLI repeats the message, or has the model continue it; but it would run the
   * calls of the broken message, and wait for their results.
   */
  #messageBroken(): readonly TurnEvent[] {
    this.#answer.isBroken = true;
    if (!this.#answer.message.hasClientCall) return [];
    this.#endTurn();
    return [...outOfTurn, turnFailed('answer_broken', "the connection to the model's API was lost within a call")];
  }

  /** The CLI answers a call itself that nobody offered, or whose input is no object: then it can't go on with this turn. */
  #isHeld(calls: readonly ToolCall[]): boolean {
    const { tools } = this.#writer;
    const isSafe = ({ name, input }: ToolCall) => tools.offers(name) && isObject(jsonOf(input));
    return calls.every(isSafe) && !tools.calls.areRepeated(calls);
  }

  #endTurn(): void {
    this.#habit.speaks = true;
    this.#habit.streams = true;
    this.#answer = emptyAnswer();
    this.#writer.answered();
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
    this.#usedSoFar = usageOf(answer.used === noTokens ? line.usage : answer.used, costUsd || null); // for a failed turn
    if (line.is_error || line.num_turns === 0) return [failed(line, answer.error, this.#limits, asked)];
    const { model, used } = answer;
    const { stop } = answer.message;
    const usage = usageOf(this.#loop === 'none' ? line.usage : used, costUsd); // the CLI counts all rounds of a loop together
    const stopped = stop?.stop_reason === 'stop_sequence' && { stopSequence: stop.stop_sequence ?? null };
    return [{ type: 'turn-end', text: correction(answer, line), model, usage, ...stopped }];
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
  const message = { used: noTokens, message: new StreamedMessage(), isBroken: false, thought: null };
  return { ...texts, ...message, model: null, error: null, hasBegun: false, streaming: 'nothing', unstreamed: [] };
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

const noTokens: MessageUsage = {
  input_tokens: 0,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: 0,
};

function added(first: MessageUsage, second: MessageUsage): MessageUsage {
  return {
    input_tokens: first.input_tokens + second.input_tokens,
    cache_creation_input_tokens: first.cache_creation_input_tokens + second.cache_creation_input_tokens,
    cache_read_input_tokens: first.cache_read_input_tokens + second.cache_read_input_tokens,
    output_tokens: first.output_tokens + second.output_tokens,
  };
}

function usageOf(usage: MessageUsage | null | undefined, costUsd: number | null): Usage {
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

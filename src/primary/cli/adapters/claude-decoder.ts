import { crashed, type Decoder, type Exit, type TurnEvent, type Usage, unknownUsage } from '../adapter.js';
import { failed } from './claude-failure.js';
import {
  type AssistantLine,
  type BlockDelta,
  type ClaudeLine,
  parseLine,
  type ResultLine,
  type StreamEventLine,
} from './claude-lines.js';
import { GrowingText } from './claude-text.js';
import { LineSplitter } from './lines.js';

/** UTF-16 units. Lines repeat the whole text, and the result of a tool can be large. */
const maxLineLength = 64 * 1024 * 1024;

interface ClaudeAnswer {
  /** The sum of the deltas, which may include a broken stream and its repetition. */
  readonly streamed: GrowingText;
  /** The sum of the whole messages: this is the answer. `result` repeats only its last block. */
  readonly said: GrowingText;
  model: string | null;
  /** The CLI's own word for what went wrong. */
  error: string | null;
  hasBegun: boolean;
}

/** Reads the stdout of one claude process. */
export class ClaudeDecoder implements Decoder {
  readonly #lines = new LineSplitter(maxLineLength);
  #answer = emptyAnswer();
  #spentUsd = 0;

  get hasBegun(): boolean {
    return this.#answer.hasBegun;
  }

  /** Not a generator: a reader that stops at the end of a turn would lose the lines after it. */
  read(chunk: string): readonly TurnEvent[] {
    return Array.from(this.#lines.split(chunk)).flatMap((text) => this.#eventsOf(parseLine(text)));
  }

  exit(exit: Exit): readonly TurnEvent[] {
    const last = this.read('\n'); // the last line may have come without a newline
    const ended = last.some(({ type }) => type === 'turn-end' || type === 'turn-failed');
    return ended ? last : [...last, crashed(exit)];
  }

  #eventsOf(line: ClaudeLine | null): readonly TurnEvent[] {
    switch (line?.type) {
      case 'stream_event':
        return this.#streamed(line);
      case 'assistant':
        return this.#said(line);
      case 'result':
        return this.#ended(line);
      default:
        return [];
    }
  }

  #streamed({ event }: StreamEventLine): readonly TurnEvent[] {
    if (event.type === 'content_block_delta') return this.#grown(event);
    if (event.type === 'message_start') this.#answer.model = event.message.model;
    else this.#answer.streamed.pass(event.content_block.type);
    return [];
  }

  #grown({ delta }: BlockDelta): readonly TurnEvent[] {
    this.#answer.hasBegun = true; // not at message_start, which the API may send long before the model's first word
    const text = delta.type === 'text_delta' ? this.#answer.streamed.add(delta.text ?? '') : '';
    return text === '' ? [] : [{ type: 'text-delta', text }];
  }

  #said({ message, error }: AssistantLine): readonly TurnEvent[] {
    this.#answer.error = error ?? null;
    if (message.model === '<synthetic>') return []; // written by the CLI itself, about an error
    this.#answer.hasBegun = true;
    this.#answer.model = message.model;
    for (const { type, text } of message.content) {
      if (type === 'text') this.#answer.said.add(text ?? '');
      else this.#answer.said.pass(type);
    }
    return [];
  }

  #ended(line: ResultLine): readonly TurnEvent[] {
    const costUsd = this.#spend(line.total_cost_usd ?? null);
    if (line.num_turns === 0 && !line.is_error && line.result === '') return [{ type: 'input-taken' }];
    const answer = this.#answer;
    this.#answer = emptyAnswer();
    if (line.is_error || line.num_turns === 0) return [failed(line, answer.error)];
    const { model } = answer;
    return [{ type: 'turn-end', text: correction(answer, line.result), model, usage: usageOf(line, costUsd) }];
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
  return { streamed: new GrowingText(), said: new GrowingText(), model: null, error: null, hasBegun: false };
}

function correction({ streamed, said }: ClaudeAnswer, result: string): string | null {
  const whole = said.toString() || result;
  return whole === '' || whole === streamed.toString() ? null : whole;
}

/** The difference of two sums has digits without a meaning. */
function roundedUsd(usd: number): number {
  return Math.round(usd * 1e9) / 1e9;
}

function usageOf({ usage }: ResultLine, costUsd: number | null): Usage {
  if (!usage) return { ...unknownUsage, costUsd };
  const { input_tokens: fresh, cache_creation_input_tokens: stored, cache_read_input_tokens: cached } = usage;
  return { inputTokens: fresh + stored + cached, outputTokens: usage.output_tokens, costUsd };
}

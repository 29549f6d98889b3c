import { crashed, type Decoder, type Exit, type TurnEvent, type Usage, unknownUsage } from '../adapter.js';
import { LineSplitter } from '../lines.js';
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

/** Lines repeat the whole text, and a tool's result can be large: UTF-16 units. */
const maxLineLength = 64 * 1024 * 1024;

interface Answer {
  /** What the deltas add up to: a broken stream and what was sent again after it included. */
  readonly streamed: GrowingText;
  /** What the whole messages add up to: the truth. `result` repeats only the last block of it. */
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

  /** At once, not as a generator: a reader that stops at an end must not lose the lines after it. */
  read(chunk: string): readonly TurnEvent[] {
    return Array.from(this.#lines.split(chunk)).flatMap((text) => this.#eventsOf(parseLine(text)));
  }

  exit(exit: Exit): readonly TurnEvent[] {
    const last = this.read('\n'); // the last line may have come without its end
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
    this.#answer.hasBegun = true; // not at its start: the API may send that long before the model has a word
    const text = delta.type === 'text_delta' ? this.#answer.streamed.add(delta.text ?? '') : '';
    return text === '' ? [] : [{ type: 'text-delta', text }];
  }

  #said({ message, error }: AssistantLine): readonly TurnEvent[] {
    this.#answer.error = error ?? null;
    if (message.model === '<synthetic>') return []; // the CLI speaks for itself, about an error
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

  /** The CLI reports what the process has cost so far. */
  #spend(totalUsd: number | null): number | null {
    if (totalUsd === null) return null;
    const costUsd = roundedUsd(Math.max(0, totalUsd - this.#spentUsd));
    this.#spentUsd = totalUsd;
    return costUsd;
  }
}

function emptyAnswer(): Answer {
  return { streamed: new GrowingText(), said: new GrowingText(), model: null, error: null, hasBegun: false };
}

function correction({ streamed, said }: Answer, result: string): string | null {
  const whole = said.toString() || result;
  return whole === '' || whole === streamed.toString() ? null : whole;
}

/** A difference of two sums has digits that mean nothing. */
function roundedUsd(usd: number): number {
  return Math.round(usd * 1e9) / 1e9;
}

function usageOf({ usage }: ResultLine, costUsd: number | null): Usage {
  if (!usage) return { ...unknownUsage, costUsd };
  const { input_tokens: fresh, cache_creation_input_tokens: stored, cache_read_input_tokens: cached } = usage;
  return { inputTokens: fresh + stored + cached, outputTokens: usage.output_tokens, costUsd };
}

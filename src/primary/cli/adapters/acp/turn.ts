import {
  type DecoderEvent,
  type Image,
  type Turn,
  type TurnEvent,
  type TurnFailed,
  type Usage,
  unknownUsage,
} from '../../contract/adapter.js';
import { turnFailed } from '../common/failure.js';
import { furtherPieces, type PromptPiece, promptPieces } from '../common/transcript.js';
import { type PromptEnded, promptEnded, type SessionUpdate } from './lines.js';

/** Owns what is known of one turn while the agent is at it. */
export class AcpTurn {
  readonly #model: string | null;
  #hasBegun = false;
  #hasText = false;
  readonly #spentBeforeUsd: number;
  #spentUsd: number | null = null;

  /** `model`: the one that was asked, as far as is known. `spentUsd`: by the turns before. */
  constructor(model: string | null, spentUsd: number) {
    this.#model = model;
    this.#spentBeforeUsd = spentUsd;
  }

  /** By the session so far, as far as the agent tells. */
  get spentUsd(): number {
    return this.#spentUsd ?? this.#spentBeforeUsd;
  }

  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  read(update: SessionUpdate): readonly DecoderEvent[] {
    if (update.sessionUpdate === 'usage_update') {
      if (update.cost?.currency === 'USD') this.#spentUsd = update.cost.amount;
      return [];
    }
    this.#hasBegun = true;
    if (update.sessionUpdate !== 'agent_message_chunk' || update.content.text === '') return [];
    this.#hasText = true;
    return [{ type: 'text-delta', text: update.content.text }];
  }

  /** `result`: the answer to the prompt. */
  end(result: unknown): TurnEvent {
    const ended = promptEnded.safeParse(result).data;
    if (ended === undefined) return turnFailed('other', 'the model CLI ended its turn in a way that is not known');
    const failed = stoppedBy(ended.stopReason, this.#hasText);
    if (failed !== null) return failed;
    const model = ended._meta?.quota?.model_usage?.[0]?.model ?? this.#model;
    const costUsd = this.#spentUsd === null ? null : Math.max(0, this.#spentUsd - this.#spentBeforeUsd);
    return { type: 'turn-end', text: null, model, usage: { ...usageOf(ended), costUsd } };
  }
}

/** Where a turn ends by another word than `end_turn`; null where it is an answer. */
export function stoppedBy(stopReason: string, hasText: boolean): TurnFailed | null {
  if (stopReason === 'refusal') return turnFailed('refused', 'the model declines to answer');
  if (stopReason === 'max_tokens') {
    return hasText
      ? turnFailed('output_too_large', 'the answer is longer than the model may write')
      : turnFailed('prompt_too_long', 'the prompt is too long for the model');
  }
  if (stopReason === 'max_turn_requests')
    return turnFailed('other', 'the model CLI asked its model too often in one turn');
  if (stopReason === 'cancelled') return turnFailed('other', 'the model CLI gave up the turn');
  return hasText ? null : turnFailed('empty_answer', 'the model CLI ended its turn without an answer');
}

function usageOf({ usage, _meta }: PromptEnded): Usage {
  const counted = _meta?.quota?.token_count;
  if (!usage && counted === undefined) return unknownUsage;
  if (!usage)
    return {
      ...unknownUsage,
      inputTokens: counted?.input_tokens ?? null,
      outputTokens: counted?.output_tokens ?? null,
    };
  const { inputTokens, outputTokens, cachedReadTokens: read = null, cachedWriteTokens: written = null } = usage;
  const cached = { cacheReadTokens: read, cacheWriteTokens: written };
  return { ...unknownUsage, ...cached, inputTokens: inputTokens + (read ?? 0) + (written ?? 0), outputTokens };
}

/** A content block of a prompt. */
export type PromptBlock = ReturnType<typeof textBlock> | ReturnType<typeof imageBlock>;

/** What agents take for a command of their own where a prompt begins with it, whatever blank stands before. */
const command = /^\s*[/$!]/;

/** Only text that begins with something else is taken for what it is. */
const guard = 'Message:\n';

/**
 * What an agent is told of a turn. It has no place for a system text and what was said before, so these stand in front
 * of the first message.
 */
export function promptBlocks(turn: Turn, isFirst: boolean): readonly PromptBlock[] {
  const pieces = joined(isFirst ? promptPieces(turn) : furtherPieces(turn));
  const first = pieces.find((piece) => typeof piece === 'string');
  return pieces.map((piece) => {
    if (typeof piece !== 'string') return imageBlock(piece);
    return textBlock(piece === first && command.test(piece) ? guard + piece : piece);
  });
}

/** With no empty texts, and none beside another. */
function joined(pieces: readonly PromptPiece[]): readonly PromptPiece[] {
  const whole: PromptPiece[] = [];
  for (const piece of pieces.filter((piece) => piece !== '')) {
    const last = whole.at(-1);
    if (typeof piece === 'string' && typeof last === 'string') whole[whole.length - 1] = last + piece;
    else whole.push(piece);
  }
  return whole;
}

function textBlock(text: string) {
  return { type: 'text', text } as const;
}

export function imageBlock({ mediaType, data }: Image) {
  return { type: 'image', mimeType: mediaType, data } as const;
}

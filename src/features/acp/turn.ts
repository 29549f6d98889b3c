import { turnFailed } from '../../primary/cli/adapters/common/failure.js';
import {
  type DecoderEvent,
  type ToolCall,
  type TurnEvent,
  type TurnFailed,
  type Usage,
  unknownUsage,
} from '../../primary/cli/contract/adapter.js';
import { type PromptEnded, promptEnded, type RequestUsage, type SessionUpdate } from './lines.js';

/** Owns the state of one turn that the agent works on. */
export class AcpTurn {
  readonly #model: string | null;
  #hasBegun = false;
  #hasText = false;
  #hasThought = false;
  readonly #spentBeforeUsd: number;
  #spentUsd: number | null = null;
  /** Tokens that fit into the context of the model, as reported by the agent. */
  #contextSize: number | null = null;
  /** Usage of the requests that the agent has reported one by one; null if none. */
  #requested: Usage | null = null;
  /** Ids of the running tools that the agent has reported. */
  readonly #running = new Set<string>();

  /** `model`: requested or current model, if known. `spentUsd`: cost of the previous turns. */
  constructor(model: string | null, spentUsd: number) {
    this.#model = model;
    this.#spentBeforeUsd = spentUsd;
  }

  /** Cost of the session so far, as reported by the agent. */
  get spentUsd(): number {
    return this.#spentUsd ?? this.#spentBeforeUsd;
  }

  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** Whether the agent has reported a call without a result. */
  get isCalling(): boolean {
    return this.#running.size > 0;
  }

  /** Ends a round with a call for the client. The agent reports the usage of all rounds at the end. */
  endRound(call: ToolCall): readonly TurnEvent[] {
    const { id, name, input } = call;
    return [
      { type: 'call-start', id, name },
      { type: 'call-delta', text: input },
      { type: 'turn-end', text: null, model: this.#model, usage: unknownUsage, calls: [call] },
    ];
  }

  /** Begins the next round. */
  resume(): void {
    this.#hasBegun = false;
    this.#hasText = false;
  }

  readUpdate(update: SessionUpdate): readonly DecoderEvent[] {
    if (update.sessionUpdate === 'usage_update') {
      if (update.cost?.currency === 'USD') this.#spentUsd = update.cost.amount;
      this.#contextSize = update.size ?? this.#contextSize;
      return [];
    }
    this.#hasBegun = true;
    if (update.sessionUpdate === 'tool_call' || update.sessionUpdate === 'tool_call_update') this.#works(update);
    if (update.sessionUpdate === 'agent_thought_chunk') {
      this.#hasThought = true;
      return [{ type: 'thought-delta', text: update.content.text }];
    }
    if (update.sessionUpdate !== 'agent_message_chunk') return [];
    if (update._meta?.usage !== undefined) this.#requested = added(this.#requested, update._meta.usage);
    if (update.content.text === '') return [];
    this.#hasText = true;
    return [{ type: 'text-delta', text: update.content.text }];
  }

  #works({ toolCallId, status }: Extract<SessionUpdate, { readonly toolCallId: string }>): void {
    if (status === 'completed' || status === 'failed') this.#running.delete(toolCallId);
    else this.#running.add(toolCallId);
  }

  /** Returns the end of the turn. `result`: the answer to the prompt. */
  endTurn(result: unknown): TurnEvent {
    const ended = promptEnded.safeParse(result).data;
    if (ended === undefined) return turnFailed('other', 'the model CLI ended its turn with an unknown stop reason');
    const usage = usageOf(ended) ?? this.#requested ?? unknownUsage;
    const hasWork = this.#hasThought || (usage.outputTokens ?? 0) > 0;
    const failed = stoppedBy(ended.stopReason, this.#hasText, hasWork);
    if (failed !== null) return failed;
    const model = ended._meta?.quota?.model_usage?.[0]?.model ?? this.#model;
    const costUsd = this.#spentUsd === null ? null : Math.max(0, this.#spentUsd - this.#spentBeforeUsd);
    const early = {
      ...(this.#contextSize !== null && { sizes: { maxInputTokens: this.#contextSize, maxOutputTokens: null } }),
      ...(ended.stopReason === 'max_tokens' && { isCutShort: true }),
      ...(ended.stopReason === 'refusal' && { refusal: { category: null, explanation: null } }),
    };
    return { type: 'turn-end', text: null, model, usage: { ...usage, costUsd }, ...early };
  }
}

/**
 * Returns the failure for a stop reason; null if the turn has at least a part of an answer. `hasWork`: whether the model
 * has written thoughts or other tokens without text.
 */
export function stoppedBy(stopReason: string, hasText: boolean, hasWork: boolean): TurnFailed | null {
  if (stopReason === 'refusal') return null;
  if (stopReason === 'max_tokens')
    return hasText || hasWork ? null : turnFailed('prompt_too_long', 'the prompt is too long for the model');
  if (stopReason === 'max_turn_requests')
    return turnFailed('other', 'the model CLI called its model too often in one turn');
  if (stopReason === 'cancelled') return turnFailed('other', 'the model CLI aborted the turn');
  return hasText ? null : turnFailed('empty_answer', 'the model CLI ended its turn without an answer');
}

/** Returns the sum of the usage so far and that of one more request. */
function added(sum: Usage | null, { inputTokens, outputTokens, cachedReadTokens }: RequestUsage): Usage {
  const { inputTokens: input, outputTokens: output, cacheReadTokens: read } = sum ?? unknownUsage;
  return {
    ...unknownUsage,
    inputTokens: (input ?? 0) + inputTokens,
    outputTokens: (output ?? 0) + outputTokens,
    cacheReadTokens: cachedReadTokens === undefined ? read : (read ?? 0) + cachedReadTokens,
  };
}

/** Returns the usage in the answer to a prompt; null if it has none. */
function usageOf({ usage, _meta }: PromptEnded): Usage | null {
  const counted = _meta?.quota?.token_count;
  if (!usage && counted === undefined) return null;
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

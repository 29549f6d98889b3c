import { allEfforts, type Effort, type ToolOffer } from '../../../shared/job.js';

export { allEfforts };

/** Rules of models, and fields that the relay adds to a request. */

/** Fields of an API that the relay adds to a request: thoughts switched off, and the demand of a tool call. */
export const addedFields = ['thinking', 'tool_choice'] as const;
export type AddedField = (typeof addedFields)[number];

/** Whether the request demands a tool call. */
export function isDemand({ choice }: ToolOffer): boolean {
  return choice !== 'auto' && choice !== 'none';
}

/** Properties of a turn that limit its sampling. */
export interface SampledTurn {
  readonly model: string | null;
  /** Whether the client wants the model to think. */
  readonly thinks: boolean;
}

/** Rules of one model. */
export interface ModelRules {
  /** Types of thinking that the API accepts, in the words of Anthropic's API; null if unknown. */
  readonly thinking: readonly ThinkingType[] | null;
  /** Whether the API can demand a tool call. If not, the relay asks for it in words, and checks the answer. */
  readonly acceptsDemand: boolean;
  /** Whether thoughts that no client has requested only say what the model does between calls. */
  readonly thinksProgress?: boolean;
  /** Efforts of the model; absent if unknown. */
  readonly efforts?: readonly Effort[];
  /** Number of the model's tokens for each token of the o200k tokenizer, until it is learnt. */
  readonly tokenFactor: number;
}

const thinkingTypes = ['adaptive', 'between_tools', 'disabled', 'enabled'] as const;
export type ThinkingType = (typeof thinkingTypes)[number];

/** Limits of a model in tokens; null if the program does not report them. */
export interface ModelSizes {
  /** Largest input, the size of the context. */
  readonly maxInputTokens: number | null;
  /** Largest answer. */
  readonly maxOutputTokens: number | null;
}

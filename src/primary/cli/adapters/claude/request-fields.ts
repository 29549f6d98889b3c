import type { Sampling, Turn } from '../../contract/adapter.js';
import { isDemand } from '../../contract/model-rules.js';
import type { ClaudeModelRules } from './model-rules.js';
import { nameForCli } from './tool-server.js';

/** Fields of an API request that the CLI does not set itself: sampling, the choice of tools, and thoughts. */

/** Character that each stop sequence for the API must contain. The service itself ends an answer at any sequence. */
const visible = /[^\s\p{C}\p{Z}]/u;

/**
 * Adjusts values to the API, which accepts a temperature up to 1, no `top_p` together with it, and neither while the
 * model thinks. Newer models accept only the default values.
 */
export function fitSampling(
  { temperature, topP, maxTokens }: Sampling,
  thinks: boolean,
  { acceptsSampling }: Pick<ClaudeModelRules, 'acceptsSampling'>,
): Sampling {
  const isFree = acceptsSampling && (!thinks || isTooLittleToThink(maxTokens));
  const minTopP = isFree ? 0 : acceptsSampling ? leastTopP : defaultTopP;
  return {
    ...(temperature !== undefined && (isFree || temperature === 1) && { temperature: Math.min(1, temperature) }),
    ...(topP !== undefined && temperature === undefined && topP >= minTopP && { topP }),
    ...(maxTokens !== undefined && { maxTokens }),
  };
}

/** Lowest `top_p` that counts as the default for every model, and that a model accepts while it thinks. */
const defaultTopP = 0.99;
const leastTopP = 0.95;
const minThinkingTokens = 1024;

/**
 * Whether the limit leaves no tokens for thinking, which counts towards it. The CLI reduces its thinking budget to the
 * limit, and the limit to the model's maximum.
 */
function isTooLittleToThink(maxTokens = Number.POSITIVE_INFINITY): boolean {
  return maxTokens <= minThinkingTokens;
}

/**
 * How much the model thinks in a turn. `off`: the CLI switches thoughts off. `disabled` and `between_tools`: types that
 * the relay sends itself. `least`: the model always thinks, so that only the effort can be low.
 */
export type ThinkingMode = 'default' | 'least' | 'off' | 'disabled' | 'between_tools';

/** Returns how much the model thinks: sampling, a small limit and a demanded call exclude thoughts. */
export function thoughtsFor(turn: Turn, { thinking, acceptsSampling }: ClaudeModelRules): ThinkingMode {
  const { offer, sampling = {}, effort, withheld = [] } = turn;
  const { temperature = 1, topP = 1, maxTokens } = sampling;
  const isDemanded = offer !== undefined && isDemand(offer) && !withheld.includes('tool_choice');
  const isSteered = acceptsSampling && (temperature !== 1 || topP < leastTopP);
  const isSmall = isTooLittleToThink(maxTokens);
  if (!isDemanded && !isSmall && (!isSteered || effort !== null || turn.thinking !== undefined)) return 'default';
  const isRefused = withheld.includes('thinking');
  if (!isRefused && thinking?.includes('between_tools')) return 'between_tools';
  if (isRefused || thinking?.includes('disabled') === false) return isSmall ? 'least' : 'default';
  // The CLI sends a temperature if thoughts are off, which excludes `top_p`.
  return sampling.topP === undefined ? 'off' : 'disabled';
}

/**
 * Returns additional fields for the Messages API. No object of a client is copied into them. The CLI sends settings of
 * its context management that need thoughts.
 */
export function extraBodyOf({ offer, sampling = {}, withheld = [], ...turn }: Turn, thoughts: ThinkingMode): object {
  const stop = (turn.stop ?? []).filter((sequence) => visible.test(sequence));
  const { temperature, topP } = sampling;
  const type = thoughts === 'disabled' || thoughts === 'between_tools' ? thoughts : null;
  return {
    ...(type !== null && { thinking: { type }, context_management: null }),
    ...(offer !== undefined && toolChoiceOf(offer, withheld.includes('tool_choice'))),
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { top_p: topP }),
    ...(stop.length > 0 && { stop_sequences: stop }),
  };
}

/** `isRefused`: whether the API cannot demand a call of this model. */
function toolChoiceOf({ choice, isParallel }: NonNullable<Turn['offer']>, isRefused: boolean): object {
  const single = isParallel ? {} : { disable_parallel_tool_use: true };
  if (choice === 'none') return { tool_choice: { type: 'none' } };
  if (choice === 'auto' || isRefused) return isParallel ? {} : { tool_choice: { type: 'auto', ...single } };
  if (choice === 'required') return { tool_choice: { type: 'any', ...single } };
  return { tool_choice: { type: 'tool', name: nameForCli(choice.name), ...single } };
}

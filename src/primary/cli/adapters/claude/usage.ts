import { type Usage, unknownUsage } from '../../contract/adapter.js';
import type { MessageUsage } from './lines.js';

/** Usage of no message. */
export const noTokens: MessageUsage = {
  input_tokens: 0,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: 0,
};

/** Returns the sum of two usages. */
export function added(first: MessageUsage, second: MessageUsage): MessageUsage {
  return {
    input_tokens: first.input_tokens + second.input_tokens,
    cache_creation_input_tokens: first.cache_creation_input_tokens + second.cache_creation_input_tokens,
    cache_read_input_tokens: first.cache_read_input_tokens + second.cache_read_input_tokens,
    output_tokens: first.output_tokens + second.output_tokens,
  };
}

/** Returns a usage in the form of the contract. */
export function usageOf(usage: MessageUsage | null | undefined, costUsd: number | null): Usage {
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

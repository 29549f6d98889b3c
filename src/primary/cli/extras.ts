import type { ModelCapabilities, ModelEntry } from '../../shared/api/models.js';
import type { JobRequest, Usage } from '../../shared/job.js';
import type { Capabilities } from './contract/adapter.js';

/** What a request needs to tell the program beside a text, and can't; null where there is nothing. */
export function unsupported(extras: Capabilities, request: JobRequest): 'images' | 'effort' | null {
  const messages = [request, ...request.history];
  if (extras.image === undefined && messages.some(({ images = [] }) => images.length > 0)) return 'images';
  return request.isEffortNeeded && request.effort !== null && extras.effort === undefined ? 'effort' : null;
}

/** What its program can be told, unless the program itself lists that this model does not take it. */
export function capabilitiesOf(
  { capabilities }: Pick<ModelEntry, 'capabilities'>,
  extras: Capabilities,
): ModelCapabilities {
  const { images = true, effort = true } = capabilities ?? {};
  return { images: images && extras.image !== undefined, effort: effort && extras.effort !== undefined };
}

/** Of two turns together. What one of them does not tell is not known of both. */
export function addedUsage(first: Usage, second: Usage): Usage {
  const sum = (name: keyof Usage) => {
    const [a, b] = [first[name], second[name]];
    return a === null || b === null ? null : a + b;
  };
  return {
    inputTokens: sum('inputTokens'),
    outputTokens: sum('outputTokens'),
    costUsd: sum('costUsd'),
    cacheReadTokens: sum('cacheReadTokens'),
    cacheWriteTokens: sum('cacheWriteTokens'),
  };
}

import { z } from 'zod';
import type { ModelEntry } from '../../contract/adapter.js';

/** What the program is asked and told about itself, outside of turns, and what it answers. */

export const authStatus = z.object({ loggedIn: z.boolean() });

/** Answered without a model call, with a line that has the same id. */
export function controlLine(id: string, request: { readonly subtype: string; readonly [field: string]: unknown }) {
  return `${JSON.stringify({ type: 'control_request', request_id: id, request })}\n`;
}

/** The id of the line with the model and the effort of a turn. */
export const modelSettings = 'model and effort';

export const initializeLine = controlLine('models', { subtype: 'initialize' });

const listed = z.object({
  value: z.string(),
  displayName: z.string(),
  description: z.string().optional(),
  supportsEffort: z.boolean().optional().catch(undefined),
});
type ListedModel = z.infer<typeof listed>;

export const modelList = z.object({
  type: z.literal('control_response'),
  response: z.object({ response: z.object({ models: z.array(listed) }) }),
});

/** A version that tells of effort leaves it out for a model that takes none. */
export function entriesOf(models: readonly ListedModel[]): ModelEntry[] {
  const tellsEffort = models.some(({ supportsEffort }) => supportsEffort === true);
  return models.map((model) => ({
    ...entryOf(model),
    ...(tellsEffort && { capabilities: { images: true, effort: model.supportsEffort === true } }),
  }));
}

/** In the program's list, its own choice is called `default`. */
function entryOf({ value, displayName, description }: ListedModel): ModelEntry {
  return { id: value, name: displayName, default: value === 'default', ...(description && { description }) };
}

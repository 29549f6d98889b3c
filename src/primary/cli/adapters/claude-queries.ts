import { z } from 'zod';
import type { ModelEntry } from '../adapter.js';

/** What the program is asked and told about itself, outside of turns, and what it answers. */

export const authStatus = z.object({ loggedIn: z.boolean() });

/** Answered without a model call, with a line that has the same id. */
export function controlLine(id: string, request: { readonly subtype: string; readonly [field: string]: unknown }) {
  return `${JSON.stringify({ type: 'control_request', request_id: id, request })}\n`;
}

export const initializeLine = controlLine('models', { subtype: 'initialize' });

const listed = z.object({ value: z.string(), displayName: z.string(), description: z.string().optional() });

export const modelList = z.object({
  type: z.literal('control_response'),
  response: z.object({ response: z.object({ models: z.array(listed) }) }),
});

/** In the program's list, its own choice is called `default`. */
export function entryOf({ value, displayName, description }: z.infer<typeof listed>): ModelEntry {
  return { id: value, name: displayName, default: value === 'default', ...(description && { description }) };
}

import { z } from 'zod';
import type { ModelEntry } from '../adapter.js';

/** What the program is asked about itself, outside of turns, and what it answers. */

export const authStatus = z.object({ loggedIn: z.boolean() });

/** Answered without a model call. */
export const initializeLine = `${JSON.stringify({
  type: 'control_request',
  request_id: 'models',
  request: { subtype: 'initialize' },
})}\n`;

const listed = z.object({ value: z.string(), displayName: z.string(), description: z.string().optional() });

export const modelList = z.object({
  type: z.literal('control_response'),
  response: z.object({ response: z.object({ models: z.array(listed) }) }),
});

/** In the program's list, its own choice is called `default`. */
export function entryOf({ value, displayName, description }: z.infer<typeof listed>): ModelEntry {
  return { id: value, name: displayName, default: value === 'default', ...(description && { description }) };
}

import { z } from 'zod';

/** MCP server of the operator that searches the web. */
export interface SearchServerPlace {
  /** URL without a fragment. Its path and query may be secrets. */
  readonly url: string;
  /** Name of the server's tool; null if the relay chooses it. */
  readonly tool: string | null;
}

/** Who searches the web: nobody, the model CLI by its own tool, or the relay by a server of the operator. */
export type SearchPosition = 'off' | 'native' | SearchServerPlace;

const prefix = 'mcp:';
const form = 'must be off, native or mcp:URL with an http:// or https:// URL without a user';

/** Schema of the position. Faults do not show the value, because a URL may contain a secret. */
export const searchPosition = z.string().transform((value, context): SearchPosition => {
  if (value === 'off' || value === 'native') return value;
  const place = value.startsWith(prefix) ? placeOf(value.slice(prefix.length)) : null;
  if (place !== null) return place;
  context.addIssue(form);
  return z.NEVER;
});

function placeOf(text: string): SearchServerPlace | null {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return null;
  const url = new URL(text);
  if (url.username !== '' || url.password !== '') return null;
  const tool = decoded(url.hash.slice(1));
  url.hash = '';
  return tool === null ? null : { url: url.href, tool: tool === '' ? null : tool };
}

function decoded(fragment: string): string | null {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return null; // a % that escapes nothing
  }
}

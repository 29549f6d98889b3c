import type { MessagesRequest } from './messages-api-stub.js';

/** Blocks before a breakpoint at which the API also looks for a stored prefix. */
const lookback = 20;

/** Block of a request as the cache compares it, and whether the client asks to store the prefix up to it. */
interface CacheBlock {
  readonly text: string;
  readonly isBreakpoint: boolean;
}

/** Sum over several requests, in bytes of JSON. */
export interface CacheUse {
  readonly total: number;
  readonly read: number;
  /** Read bytes divided by all bytes. */
  readonly share: number;
  /** Requests that do not begin with all blocks of the request before them, with the first block that differs. */
  readonly changes: readonly string[];
}

/**
 * Returns how much of these requests, one after the other, the prompt cache of the Messages API would serve: the
 * longest prefix, in the order tools, system, messages, that an earlier request has stored with `cache_control`.
 */
export function cacheUseOf(requests: readonly MessagesRequest[]): CacheUse {
  const stored = new Set<string>();
  const changes: string[] = [];
  let [total, read] = [0, 0];
  let previous: readonly CacheBlock[] = [];
  for (const request of requests) {
    const blocks = blocksOf(request);
    const prefixes = prefixesOf(blocks);
    total += prefixes.at(-1)?.length ?? 0;
    const ends = blocks.flatMap(({ isBreakpoint }, at) => (isBreakpoint ? [at] : []));
    const candidates = ends.flatMap((end) => prefixes.slice(Math.max(0, end - lookback), end + 1));
    read += Math.max(0, ...candidates.filter((prefix) => stored.has(prefix)).map(({ length }) => length));
    for (const end of ends) stored.add(prefixes[end] ?? '');
    const changed = previous.findIndex(({ text }, at) => text !== blocks[at]?.text);
    if (changed >= 0) changes.push(differenceOf(previous[changed]?.text ?? '', blocks[changed]?.text ?? ''));
    previous = blocks;
  }
  return { total, read, share: read / total, changes };
}

/** Returns the first places at which two texts differ. */
function differenceOf(before: string, after: string): string {
  let at = 0;
  while (at < before.length && before[at] === after[at]) at++;
  const place = (text: string) => text.slice(Math.max(0, at - 100), at + 100);
  return `${place(before)} → ${place(after)}`;
}

function blocksOf({ body }: MessagesRequest): CacheBlock[] {
  const system = typeof body.system === 'string' ? [{ type: 'text', text: body.system }] : (body.system ?? []);
  const messages = body.messages.flatMap(({ role, content }) => {
    const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
    return blocks.map((block) => ({ role, ...block }));
  });
  return [...(body.tools ?? []), ...system, ...messages].map((block) => ({
    text: JSON.stringify({ ...block, cache_control: undefined }),
    isBreakpoint: 'cache_control' in block,
  }));
}

function prefixesOf(blocks: readonly CacheBlock[]): string[] {
  let prefix = '';
  return blocks.map(({ text }) => {
    prefix += `${text}\n`;
    return prefix;
  });
}

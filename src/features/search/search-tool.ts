import { z } from 'zod';
import type { WebSearch } from '../../shared/job.js';
import { SearchServerFault } from './mcp-post.js';

/** Tool of the search server, and the names of its arguments. */
export interface SearchTool {
  readonly name: string;
  readonly query: string;
  /** Argument for the only domains to search; null if the tool has none. */
  readonly allowedDomains: string | null;
  /** Argument for the domains to leave out; null if the tool has none. */
  readonly blockedDomains: string | null;
}

const listedTool = z.object({
  name: z.string().min(1),
  inputSchema: z.object({
    properties: z.record(z.string(), z.unknown()).catch({}),
    required: z.array(z.string()).catch([]),
  }),
});
type ListedTool = z.infer<typeof listedTool>;

/** Largest number of tools of one page of the list that are read. */
const maxTools = 500;

/** Schema of the answer to `tools/list`. Tools that are malformed are left out. */
export const toolList = z.object({
  tools: z
    .array(z.unknown())
    .transform((tools) => tools.slice(0, maxTools).flatMap((tool) => listedTool.safeParse(tool).data ?? [])),
  nextCursor: z.string().nullish().catch(null),
});

const usualTools = ['web_search', 'search'];
const usualQueries = ['query', 'q'];
const allowing = ['allowed_domains', 'include_domains'];
const blocking = ['blocked_domains', 'exclude_domains'];

/**
 * Chooses a tool of the server: the named one, else the only one, else `web_search` or `search`. Throws a
 * `SearchServerFault` if no tool fits, or if the arguments of the tool are unknown.
 */
export function searchToolIn(tools: readonly ListedTool[], named: string | null): SearchTool {
  const obvious = tools.length === 1 ? tools[0] : usualTools.flatMap((name) => withName(tools, name) ?? [])[0];
  const tool = named === null ? obvious : withName(tools, named);
  if (tool !== undefined) return toolWithArguments(tool);
  const what = named === null ? 'it has no tool web_search or search' : `it has no tool ${named}`;
  throw new SearchServerFault(`${what}: MODEL_API_SEARCH=mcp:URL#NAME can name one of ${listOf(tools)}`);
}

function withName(tools: readonly ListedTool[], name: string): ListedTool | undefined {
  return tools.find((tool) => tool.name === name);
}

const maxListed = 10;

function listOf(tools: readonly ListedTool[]): string {
  return tools.length === 0
    ? 'none'
    : tools
        .map(({ name }) => name.slice(0, 64))
        .slice(0, maxListed)
        .join(', ');
}

function toolWithArguments({ name, inputSchema: { properties, required } }: ListedTool): SearchTool {
  const has = (argument: string) => Object.hasOwn(properties, argument);
  const texts = required.filter((argument) => has(argument) && isText(properties[argument]));
  const query = usualQueries.find(has) ?? (texts.length === 1 ? texts[0] : undefined);
  if (query === undefined) throw new SearchServerFault(`its tool ${name.slice(0, 64)} has no argument query`);
  const other = required.find((argument) => argument !== query);
  if (other !== undefined)
    throw new SearchServerFault(
      `its tool ${name.slice(0, 64)} needs another argument than ${query}: ${other.slice(0, 64)}`,
    );
  return {
    name,
    query,
    allowedDomains: allowing.find(has) ?? null,
    blockedDomains: blocking.find(has) ?? null,
  };
}

function isText(schema: unknown): boolean {
  return z.object({ type: z.literal('string') }).safeParse(schema).success;
}

/** Domains of the client's search. */
export type SearchDomains = Pick<WebSearch, 'allowedDomains' | 'blockedDomains'>;

/** Returns the arguments of a call. */
export function argumentsOf(
  tool: SearchTool,
  query: string,
  { allowedDomains, blockedDomains }: SearchDomains,
): object {
  return {
    [tool.query]: query,
    ...(tool.allowedDomains !== null && allowedDomains && { [tool.allowedDomains]: allowedDomains }),
    ...(tool.blockedDomains !== null && blockedDomains && { [tool.blockedDomains]: blockedDomains }),
  };
}

/** Returns why the tool cannot limit a search to these domains; null if it can. */
export function domainFault(tool: SearchTool, { allowedDomains, blockedDomains }: SearchDomains): string | null {
  const cannot = (words: string) => `cannot ${words} here: the search server has no argument for it`;
  if (allowedDomains !== undefined && tool.allowedDomains === null) return cannot('limit the search to domains');
  return blockedDomains !== undefined && tool.blockedDomains === null ? cannot('exclude domains') : null;
}

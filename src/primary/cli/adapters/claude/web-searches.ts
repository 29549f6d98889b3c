import { z } from 'zod';
import type { DecoderEvent, SearchLimits, SearchMade } from '../../contract/adapter.js';
import { jsonOf } from '../common/lines.js';
import { ClaudeAdditions } from './additions.js';
import { type ControlRequest, permissionAnswer } from './tool-server.js';

/** Name of the CLI's tool that searches the web. */
export const searchTool = 'WebSearch';

/** Limits for texts of one search, in UTF-16 units, and for its results. */
const maxQueryLength = 1000;
const maxTitleLength = 200;
const maxUrlLength = 1000;
const maxResults = 20;

const searchInput = z.object({
  query: z.string().min(1).max(maxQueryLength),
  allowed_domains: z.array(z.string()).nullish().catch(null),
  blocked_domains: z.array(z.string()).nullish().catch(null),
});
type SearchInput = z.infer<typeof searchInput>;

const found = z.object({ content: z.array(z.object({ title: z.string(), url: z.string() })) });

/** Line of the CLI with the results of its tools. */
const resultLine = z.object({
  type: z.literal('user'),
  parent_tool_use_id: z.null().optional(),
  message: z.object({ content: z.array(z.object({ type: z.literal('tool_result'), tool_use_id: z.string() })) }),
  tool_use_result: z
    .object({
      results: z.array(z.union([found, z.string()])),
      searchCount: z.int().nonnegative().catch(1),
    })
    .nullish()
    .catch(null),
});

/**
 * Owns the web searches of one claude process: permits them within the limits of the turn, and reads their results. The
 * CLI asks for permission before each call of its tool, and then searches by a request to its API.
 */
export class WebSearches {
  /** Messages that the user adds to the turn. A search is a pause of the model, after which it gets them. */
  readonly additions = new ClaudeAdditions();
  #limits: SearchLimits | null = null;
  #used = 0;
  /** Queries of permitted searches without a result, by the id of the call. */
  readonly #open = new Map<string, string>();

  /** Whether the CLI is searching, so that the model is at a pause. */
  get isSearching(): boolean {
    return this.#open.size > 0;
  }

  /** Begins a turn. `limits`: null if the model may not search. */
  beginTurn(limits: SearchLimits | null): void {
    this.#limits = limits;
    this.#used = 0;
    this.#open.clear();
    this.additions.beginTurn();
  }

  /** Returns why the CLI must not run this turn with these tools; null if it may. */
  faultOf(tools: readonly string[]): string | null {
    if (this.#limits === null) return null;
    const other = tools.find((name) => name !== searchTool);
    if (other !== undefined) return `the model CLI has another tool than its web search: ${other}`;
    return tools.length === 0 ? 'the model CLI cannot search the web with this version or login' : null;
  }

  /** Answers the request for permission to search; returns null for any other request. */
  decide({ request_id: requestId, request }: ControlRequest): readonly DecoderEvent[] | null {
    if (this.#limits === null || !('input' in request)) return null;
    const { tool_name: name, tool_use_id: id, mcp_server: server, input } = request;
    const { data: search } = searchInput.safeParse(input);
    if (name !== searchTool || server !== undefined || id === undefined || search === undefined) return null;
    const { query } = search;
    if (this.#used >= this.#limits.maxUses) {
      const message = 'No further search is allowed for this answer. Answer with what you know.';
      const refusal = permissionAnswer(requestId, { behavior: 'deny', message });
      const refused = { type: 'search', id, query, results: [], error: 'max_uses_exceeded', count: 0 } as const;
      return [{ type: 'reply', text: refusal }, refused];
    }
    this.#used++;
    this.#open.set(id, query);
    const updatedInput = { query, ...domainsOf(search, this.#limits) };
    const permission = permissionAnswer(requestId, { behavior: 'allow', updatedInput });
    return [{ type: 'reply', text: this.additions.takeLines() + permission }];
  }

  /** Returns the search whose result a line has; null for any other line. */
  readLine(line: string): SearchMade | null {
    if (this.#open.size === 0 || !line.startsWith('{"type":"user"')) return null;
    const { data } = resultLine.safeParse(jsonOf(line));
    const id = data?.message.content.map((each) => each.tool_use_id).find((each) => this.#open.has(each));
    if (data === undefined || id === undefined) return null;
    const query = this.#open.get(id) ?? '';
    this.#open.delete(id);
    const { results = [], searchCount: count = 1 } = data.tool_use_result ?? {};
    this.#used += Math.max(0, count - 1);
    const links = results.flatMap((each) => (typeof each === 'string' ? [] : each.content)).filter(isLink);
    const shown = links.slice(0, maxResults).map(({ title, url }) => ({ title: title.slice(0, maxTitleLength), url }));
    const error = shown.length > 0 ? null : errorIn(data.tool_use_result?.results);
    return { type: 'search', id, query, results: shown, ...(error !== null && { error }), count };
  }
}

/** Returns the domains of a search. Those of the client replace those of the model. */
function domainsOf({ allowed_domains, blocked_domains }: SearchInput, limits: SearchLimits): object {
  if (limits.allowedDomains !== undefined) return { allowed_domains: limits.allowedDomains };
  if (limits.blockedDomains !== undefined) return { blocked_domains: limits.blockedDomains };
  return { ...(allowed_domains && { allowed_domains }), ...(blocked_domains && { blocked_domains }) };
}

function isLink({ url }: { readonly url: string }): boolean {
  return url.length <= maxUrlLength && /^https?:\/\//.test(url);
}

/** Returns the error code of a search without links; null if it only found nothing. */
function errorIn(results: readonly unknown[] | undefined): string | null {
  if (results === undefined) return 'unavailable';
  const texts = results.filter((each) => typeof each === 'string');
  return texts.flatMap((text) => /^Web search error: (\w+)$/.exec(text)?.[1] ?? [])[0] ?? null;
}

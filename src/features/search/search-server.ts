import { atMost, orAborted } from '../../shared/async.js';
import { type ClientText, holderOf } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import { type RpcAnswer, rpcNotification, rpcRequest } from '../protocols/json-rpc.js';
import { limitedLookup } from '../protocols/limited-lookup.js';
import { atMostOf } from './at-most-of.js';
import { type McpTarget, postMessage, SearchServerFault } from './mcp-post.js';
import type { SearchServerPlace } from './search-position.js';
import { readSearchResult, type SearchResult } from './search-result.js';
import {
  argumentsOf,
  domainFault,
  type SearchDomains,
  type SearchTool,
  searchToolIn,
  toolList,
} from './search-tool.js';

/** Time limit of one search, with its wait for other searches. */
const searchLimitMs = 20_000;
/** Largest number of searches at once, and of one client: its slow searches must not use up the time of others. */
const maxSearches = 8;
const maxOfClient = 4;
/** Largest number of pages of the list of tools. */
const maxPages = 10;
const maxReasonLength = 240;
/** Shorter parts of a URL are words, such as `mcp` or `search`. */
const minSecretLength = 8;
const protocolVersion = '2025-11-25';

/** State after the handshake with the server. */
interface ServerConnection {
  readonly target: McpTarget;
  readonly tool: SearchTool;
}

interface SearchServerParts {
  /** Token for the server; null for none. */
  readonly token: string | null;
  readonly version: string;
  readonly clock: Pick<Clock, 'after'>;
  /** Called with the reason of each failure, in one clause. */
  readonly onFailure: (reason: string) => void;
}

/**
 * Searches the web by a tool of the operator's MCP server. Searches share the session and the choice of the tool until a
 * request fails. A failure of the server becomes a result that tells the model about it.
 */
export class SearchServer {
  readonly #place: SearchServerPlace;
  readonly #parts: SearchServerParts;
  /** Texts of the token and the URL that a server may repeat in an error, and that no log may have. */
  readonly #secrets: readonly string[];
  readonly #inTurn = atMost(maxSearches);
  readonly #inTurnOf = atMostOf(maxOfClient);
  readonly #lookup = limitedLookup();
  #connecting: Promise<ServerConnection> | null = null;
  #tool: SearchTool | null = null;
  #lastId = 0;

  constructor(place: SearchServerPlace, parts: SearchServerParts) {
    this.#place = place;
    this.#parts = parts;
    this.#secrets = [parts.token ?? [], secretsIn(place.url)].flat();
  }

  /** Learns the tool of the server. Reports a failure; the first search then tries again. */
  async learn(): Promise<void> {
    await this.#connection().catch((error: unknown) => this.#report(error));
  }

  /** Returns why no search can be limited to these domains; null if it can, or if the server is not known yet. */
  domainFault(domains: SearchDomains): string | null {
    return this.#tool === null ? null : domainFault(this.#tool, domains);
  }

  /** Searches the web for a client. Rejects only if the signal aborts. */
  async find(query: string, domains: SearchDomains, client: ClientText, signal: AbortSignal): Promise<SearchResult> {
    signal.throwIfAborted();
    const limit = new AbortController();
    const stopTimer = this.#parts.clock.after(searchLimitMs, () => limit.abort(late()));
    const abort = () => limit.abort(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    try {
      const search = () => this.#search(query, domains, limit.signal);
      const found = this.#inTurnOf(holderOf(client), () => this.#inTurn(search));
      return await orAborted(found, limit.signal);
    } catch (error) {
      signal.throwIfAborted();
      this.#report(error);
      return unavailable;
    } finally {
      stopTimer();
      signal.removeEventListener('abort', abort);
    }
  }

  #report(error: unknown): void {
    let reason = (error as Error).message;
    for (const secret of this.#secrets) reason = reason.replaceAll(secret, '[secret]');
    this.#parts.onFailure(reason.slice(0, maxReasonLength)); // not before, or a part of a secret would be left
  }

  async #search(query: string, domains: SearchDomains, signal: AbortSignal): Promise<SearchResult> {
    signal.throwIfAborted();
    const first = this.#connection();
    try {
      return await this.#call(await orAborted(first, signal), query, domains, signal);
    } catch (error) {
      if (!(error instanceof SearchServerFault)) throw error;
      if (this.#connecting === first) this.#connecting = null;
      if (!error.isSessionLost) throw error;
    }
    return this.#call(await orAborted(this.#connection(), signal), query, domains, signal);
  }

  async #call({ target, tool }: ServerConnection, query: string, domains: SearchDomains, signal: AbortSignal) {
    const fault = domainFault(tool, domains);
    if (fault !== null) return { text: `The search ${fault}.`, links: [], isError: true };
    const params = { name: tool.name, arguments: argumentsOf(tool, query, domains) };
    const result = readSearchResult(resultOf((await this.#request(target, 'tools/call', params, signal)).message));
    if (result === null) throw new SearchServerFault('its result has no text');
    if (result.isError) this.#parts.onFailure('its tool reports an error');
    return result;
  }

  /** Returns the connection of all searches. The end of a job does not end it, because other jobs may wait for it. */
  #connection(): Promise<ServerConnection> {
    if (this.#connecting !== null) return this.#connecting;
    const limit = new AbortController();
    const stopTimer = this.#parts.clock.after(searchLimitMs, () => limit.abort(late()));
    const connecting = orAborted(this.#connect(limit.signal), limit.signal).finally(stopTimer);
    this.#connecting = connecting;
    connecting.catch(() => {
      if (this.#connecting === connecting) this.#connecting = null;
    });
    return connecting;
  }

  async #connect(signal: AbortSignal): Promise<ServerConnection> {
    const { token, version } = this.#parts;
    const headers = {
      'user-agent': `prompt-relay/${version}`,
      ...(token !== null && { authorization: `Bearer ${token}` }),
    };
    const opening = { url: this.#place.url, headers, lookup: this.#lookup };
    const clientInfo = { name: 'prompt-relay', version };
    const { message, sessionId } = await this.#request(
      opening,
      'initialize',
      { protocolVersion, capabilities: {}, clientInfo },
      signal,
    );
    const { protocolVersion: agreed } = Object(resultOf(message)) as { readonly protocolVersion?: unknown };
    const session = {
      ...(typeof agreed === 'string' && /^[\w.-]{1,32}$/.test(agreed) && { 'mcp-protocol-version': agreed }),
      ...(sessionId !== null && { 'mcp-session-id': sessionId }),
    };
    const target = { ...opening, headers: { ...headers, ...session } };
    await postMessage(target, rpcNotification('notifications/initialized'), null, signal);
    const tool = searchToolIn(await this.#listTools(target, signal), this.#place.tool);
    this.#tool = tool;
    return { target, tool };
  }

  async #listTools(target: McpTarget, signal: AbortSignal) {
    const tools = [];
    let params: object = {};
    for (let page = 0; page < maxPages; page++) {
      const { data } = toolList.safeParse(
        resultOf((await this.#request(target, 'tools/list', params, signal)).message),
      );
      if (data === undefined) throw new SearchServerFault('its list of tools is malformed');
      tools.push(...data.tools);
      if (!data.nextCursor) break;
      params = { cursor: data.nextCursor };
    }
    return tools;
  }

  #request(target: McpTarget, method: string, params: object, signal: AbortSignal) {
    const id = ++this.#lastId;
    return postMessage(target, rpcRequest(id, method, params).trimEnd(), id, signal);
  }
}

/** Returns the parts of a URL that may be a credential: long segments of its path, and long values of its query. */
function secretsIn(url: string): string[] {
  const { pathname, search, searchParams } = new URL(url);
  const parts = [...pathname.split('/'), ...search.split(/[?&=]/), ...searchParams.values()];
  return parts.filter((part) => part.length >= minSecretLength).sort((a, b) => b.length - a.length);
}

function late(): SearchServerFault {
  return new SearchServerFault(`no answer in ${searchLimitMs / 1000} s`);
}

const unavailable: SearchResult = {
  text: 'The web search is unavailable now. Answer with what you know, and say so.',
  links: [],
  isError: true,
};

function resultOf(message: RpcAnswer | null): unknown {
  if (message?.type === 'result') return message.result;
  const { code = 0, message: reason = '' } = message?.error ?? {};
  throw new SearchServerFault(`it reports the error ${code}: ${reason.replace(/\s+/g, ' ')}`);
}

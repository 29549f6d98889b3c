import { isPrivateUrl } from '../../shared/config/addresses.js';
import type { FeatureVariables, ValuesOf } from '../../shared/config/feature-variables.js';
import type { FeatureKeyOption } from '../../shared/config/key-option-table.js';
import { text } from '../../shared/config/values.js';
import { searchPosition } from './search-position.js';

/** Tables of the web search, which both processes and the documents read. */

export const variables = {
  MODEL_API_SEARCH: {
    ...{ schema: searchPosition, fallback: 'off', secrecy: 'part' },
    meaning:
      'who [searches the web](clis.md#web-search) for clients whose key has the option `search`: `native`: the tool of claude; `mcp:URL`: the service, by an MCP server, for any CLI',
  },
  MODEL_API_SEARCH_TOKEN_FILE: {
    ...{ schema: text, fallback: null, secrecy: 'file' },
    meaning: 'file with the bearer token for that server. Read only at the start',
  },
} as const satisfies FeatureVariables;

export type SearchValues = ValuesOf<typeof variables>;

export function findFaults(values: Partial<SearchValues>): string[] {
  const { MODEL_API_SEARCH: position, MODEL_API_SEARCH_TOKEN_FILE: token } = values;
  const isUseless = token != null && typeof position === 'string';
  return isUseless ? ['MODEL_API_SEARCH_TOKEN_FILE: needs MODEL_API_SEARCH to be mcp:URL'] : [];
}

export function findWarnings({ MODEL_API_SEARCH: position }: SearchValues): string[] {
  if (typeof position === 'string' || isPrivateUrl(position.url)) return [];
  return ['MODEL_API_SEARCH: searches and the token are sent without encryption: use https'];
}

/** Web searches in a day with the option `search=on`. */
const usualSearches = 100;

/** Returns the web searches in a day that the text of the option allows. Throws if the text is wrong. */
function searchesIn(text: string): number {
  if (text === 'on') return usualSearches;
  const [, count = ''] = /^(\d{1,6})\/day$/.exec(text) ?? [];
  if (Number(count) > 0) return Number(count);
  throw new Error('must be on, or a number of searches a day, such as 20/day');
}

const name = 'search';

export const keyOptions = {
  [name]: {
    read: (text) => {
      const perDay = searchesIn(text ?? '');
      return perDay === usualSearches ? 'on' : `${perDay}/day`;
    },
    flag: { type: 'string', placeholder: 'on', description: 'the model may search the web; or 20/day for fewer' },
    http: {
      description: 'The model may search the web: `on`, or searches in a day such as `20/day`.',
      isWithin: (text, maker) => text === null || (maker !== null && searchesIn(text) <= searchesIn(maker)),
    },
    document: [
      'search=20/day',
      'the model may [search the web](clis.md#web-search) for the client: this many times a day (UTC); `search=on`: 100 times',
    ],
  },
} as const satisfies Readonly<Record<string, FeatureKeyOption>>;

/** Returns the web searches in a day (UTC) that the options of a client allow; null if it may not search. */
export function searchesPerDay(options: Readonly<Record<string, string>>): number | null {
  const text = options[name];
  return text === undefined ? null : searchesIn(text);
}

export const logEvents = {
  search_failed: 'the search server did not answer a search: error',
} as const;

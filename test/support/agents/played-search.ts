import type { Service } from '../service/service.js';
import { startWithClaude } from './claude-service.js';
import {
  type ApiSearch,
  type MessagesApi,
  offersSearch,
  says,
  saysAndCalls,
  searchesAndSays,
} from './messages-api-stub.js';
import { searchKeys } from './search-key.js';

export const rain = { title: 'Rain', url: 'https://example.org/rain' };
export const sun = { title: 'Sun', url: 'https://example.org/sun' };
export const rainyAnswer = 'It rains, see [Rain](https://example.org/rain).';

/** Starts a service with the real claude whose only key, that of `searcher`, has this option. */
export async function startSearching(
  api: MessagesApi,
  folder: string,
  option = 'search=on',
  position = 'native',
): Promise<Service> {
  return startWithClaude(api, { env: { MODEL_API_SEARCH: position, ...(await searchKeys(folder, option)) } });
}

/** Lets the model search `count` times with this tool, and then answer. */
export function playSearches(
  api: MessagesApi,
  count: number,
  found: ApiSearch['found'] = [rain, sun],
  name = 'WebSearch',
): void {
  let calls = 0;
  api.behave = (request) => {
    if (offersSearch(request)) return searchesAndSays({ query: 'rain in Paris', found }, 'It rains in Paris.');
    if (calls++ >= count) return says(rainyAnswer);
    return saysAndCalls('Let me look.', { id: `toolu_${calls}`, name, input: { query: `rain ${calls}` } });
  };
}

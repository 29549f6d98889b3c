import type { CreatePrimaryPart } from '../../primary/features/feature.js';
import type { ClientText } from '../../shared/client.js';
import { usageOf } from '../usage/primary.js';
import type { SearchServerPlace } from './search-position.js';
import { SearchQuota, searchLimitsOf } from './search-quota.js';
import type { SearchServer } from './search-server.js';
import { searchHooks } from './searcher.js';
import type { SearchValues } from './shared.js';

/** `Server` is null if the service itself does not search. */
export function createSearch(values: SearchValues, Server: typeof SearchServer | null): CreatePrimaryPart {
  const { MODEL_API_SEARCH: position, MODEL_API_SEARCH_TOKEN_FILE: token } = values;
  return (core) => {
    const { host, clients, config } = core;
    const { clock, product, log } = host;
    const limitsOf = (client: ClientText) => searchLimitsOf(client, (each) => clients.optionsOf(each).featureOptions);
    const quota = new SearchQuota(position, limitsOf, usageOf(core).recent, clock);
    const onFailure = (error: string) => log.warn('search_failed', { error });
    const parts = { token, version: product.version, clock, onFailure };
    const server = Server === null ? null : new Server(position as SearchServerPlace, parts);
    const hooks = searchHooks(quota, server && { server, maxOutputBytes: config.maxOutputBytes });
    return { ...hooks, handlers: {}, start: () => void server?.learn() };
  };
}

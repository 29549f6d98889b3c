import type { SearchLimit } from '../../../src/features/search/search-quota.js';
import type { ClientRate } from '../../../src/primary/access/clients.js';
import { type ClientText, spendersOf } from '../../../src/shared/client.js';
import type { Rate } from '../../../src/shared/config/api-keys.js';

/** Returns the same rate limit for each client. */
export function sameRate(rate: Rate): (client: ClientText) => ClientRate[] {
  return (client) => spendersOf(client).map((spender) => ({ client: spender, rate }));
}

/** Returns the same limit of searches for each client; none if it may not search. */
export function sameSearchLimit(perDay: () => number | null): (client: ClientText) => SearchLimit[] {
  return (client) => {
    const limit = perDay();
    return limit === null ? [] : spendersOf(client).map((spender) => ({ client: spender, perDay: limit }));
  };
}

import type { SearchQuota } from '../access/search-quota.js';
import type { Job } from './job.js';

/**
 * Reserves web searches for a job that may make some, until the returned value is disposed of. Returns null for another
 * job. Throws `rate_limited` if the client has used its searches of the day.
 */
export function allowSearches(job: Job, searches: Pick<SearchQuota, 'reserve' | 'settle'>): Disposable | null {
  const { search, client } = job.request;
  if (search === undefined) return null;
  const reserved = searches.reserve(search, client);
  job.allowSearches(reserved);
  return { [Symbol.dispose]: () => searches.settle(client, reserved, job.searches) };
}

import type { Job } from '../../primary/jobs/job.js';
import type { SearchGrant } from '../../primary/jobs/web-searcher.js';
import type { SearchQuota } from './search-quota.js';

/** Owns the web searches that are reserved for a job. */
export class ReservedSearches implements SearchGrant {
  readonly #job: Pick<Job, 'request' | 'maxSearches'>;
  readonly #searches: Pick<SearchQuota, 'reserve' | 'settle'>;
  #reserved = 0;

  constructor(job: Pick<Job, 'request' | 'maxSearches'>, searches: Pick<SearchQuota, 'reserve' | 'settle'>) {
    this.#job = job;
    this.#searches = searches;
  }

  reserve(): void {
    const { search, client } = this.#job.request;
    if (search === undefined) return;
    this.#reserved = this.#searches.reserve(search, client);
    this.#job.maxSearches = this.#reserved;
  }

  [Symbol.dispose](): void {
    this.#searches.settle(this.#job.request.client, this.#reserved);
  }
}

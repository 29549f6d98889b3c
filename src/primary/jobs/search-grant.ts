import type { SearchQuota } from '../access/search-quota.js';
import type { Job } from './job.js';

/**
 * Owns the web searches that are reserved for a job. The caller must count the end of the job and then
 * dispose of the grant, in one round of the event loop: otherwise the searches would count twice, or not at all.
 */
export class SearchGrant implements Disposable {
  readonly #job: Job;
  readonly #searches: Pick<SearchQuota, 'reserve' | 'settle'>;
  #reserved = 0;

  constructor(job: Job, searches: Pick<SearchQuota, 'reserve' | 'settle'>) {
    this.#job = job;
    this.#searches = searches;
  }

  /** Reserves web searches if the job may make some. Throws `rate_limited` if the client has used its searches of the day. */
  reserve(): void {
    const { search, client } = this.#job.request;
    if (search === undefined) return;
    this.#reserved = this.#searches.reserve(search, client);
    this.#job.allowSearches(this.#reserved);
  }

  [Symbol.dispose](): void {
    this.#searches.settle(this.#job.request.client, this.#reserved);
  }
}

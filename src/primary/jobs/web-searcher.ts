import type { Capabilities } from '../cli/contract/adapter.js';
import type { Job } from './job.js';

/** Web searches of one job. */
export interface SearchGrant extends Disposable {
  /** Reserves searches if the job may make some. Throws `rate_limited` if the client has used its searches. */
  reserve(): void;
}

/** Limits the web searches of jobs, and may make them itself. */
export interface WebSearcher {
  /** Whether a program can serve a job that may search. */
  canSearch(extras: Capabilities): boolean;
  /** Reason of a refusal if the program cannot. */
  readonly refusal: string;
  /** Whether model CLIs search. Otherwise, the service searches. */
  readonly isNative: boolean;
  /**
   * Returns the searches of a job; nothing is reserved yet. The caller must count the end of the job and then dispose of
   * them, in one round of the event loop: otherwise the searches would count twice, or not at all.
   */
  grantFor(job: Pick<Job, 'request' | 'maxSearches'>): SearchGrant;
}

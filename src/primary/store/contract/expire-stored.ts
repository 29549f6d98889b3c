import type { Config } from '../../../shared/config/config.js';
import { ignoreFailure } from '../../../shared/errors.js';
import { uploadLimitMs } from './files.js';
import type { Store } from './store.js';

/**
 * Removes stored data whose time has passed, also data of features that this service no longer has. Failures are
 * ignored, because the call is repeated.
 */
export function expireStored(
  { files, answers, jobs, responses, upkeep }: Pick<Store, 'files' | 'answers' | 'jobs' | 'responses' | 'upkeep'>,
  { jobTtlMs, conversationTtlMs }: Pick<Config, 'jobTtlMs' | 'conversationTtlMs'>,
  now: number,
): void {
  jobs.expire(now - jobTtlMs).catch(ignoreFailure);
  responses.expire(now - conversationTtlMs).catch(ignoreFailure);
  files.expire(now, now - uploadLimitMs).catch(ignoreFailure);
  answers.expire(now);
  upkeep.expireRows(now).catch(ignoreFailure);
}

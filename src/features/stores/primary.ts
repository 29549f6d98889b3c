import { ignoreFailure } from '../../shared/errors.js';
import { uploadLimitMs } from './contract/files.js';
import { type StoringCore, usingStore } from './contract/full-store.js';

/** Creates the part that removes stored data whose time has passed, also data of features that the service no longer has. */
export const createStores = usingStore((core) => {
  const expire = () => expireStored(core, core.host.clock.now());
  return { handlers: {}, start: expire, expire };
});

/** Failures are ignored, because the call is repeated. */
export function expireStored(
  {
    store: { files, answers, jobs, responses, upkeep },
    config: { jobTtlMs, conversationTtlMs },
  }: {
    readonly store: Pick<StoringCore['store'], 'files' | 'answers' | 'jobs' | 'responses' | 'upkeep'>;
    readonly config: Pick<StoringCore['config'], 'jobTtlMs' | 'conversationTtlMs'>;
  },
  now: number,
): void {
  jobs.expireJobs(now - jobTtlMs).catch(ignoreFailure);
  files.expireFiles(now, now - uploadLimitMs).catch(ignoreFailure);
  responses.expireResponses(now - conversationTtlMs).catch(ignoreFailure);
  answers.expireAnswers(now);
  upkeep.expireRows(now).catch(ignoreFailure);
}

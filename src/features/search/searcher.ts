import type { WebSearcher } from '../../primary/jobs/web-searcher.js';
import { invalid } from '../../shared/errors.js';
import type { JobRequest } from '../../shared/job.js';
import { answerWithSearches } from './relay-search.js';
import { ReservedSearches } from './reserved-searches.js';
import type { SearchQuota } from './search-quota.js';
import type { SearchServer } from './search-server.js';

/** Server of the operator by which the service itself searches, for any model CLI without tools of its own. */
interface RelayParts {
  readonly server: Pick<SearchServer, 'find' | 'domainFault'>;
  /** Longest text of an answer. */
  readonly maxOutputBytes: number;
}

/** Hooks for jobs that may search. */
interface SearchHooks {
  /** Throws if the client may not search now, or not with these limits. */
  check(request: JobRequest): void;
  readonly searcher: WebSearcher;
}

/** Creates the hooks of the web search. `relay` is null if model CLIs search by a tool of their own. */
export function searchHooks(quota: SearchQuota, relay: RelayParts | null): SearchHooks {
  const grantFor: WebSearcher['grantFor'] = (job) => new ReservedSearches(job, quota);
  return {
    check: ({ search, client }) => {
      if (search === undefined) return;
      quota.check(search, client);
      const fault = relay?.server.domainFault(search) ?? null;
      if (fault !== null) throw invalid(search.path, fault);
    },
    searcher:
      relay === null
        ? {
            canSearch: ({ search }) => search === true,
            refusal: 'the model CLI of this service cannot search the web',
            answer: null,
            grantFor,
          }
        : {
            canSearch: ({ ownTools }) => ownTools === undefined,
            refusal: 'cannot be used with a model CLI that has its own tools (MODEL_API_CLI_ARGS)',
            answer: (turns, turn) => answerWithSearches(turns, turn, relay),
            grantFor,
          },
  };
}

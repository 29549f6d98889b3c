import type { PrimaryPart } from '../../primary/features/feature.js';
import type { WebSearcher } from '../../primary/jobs/web-searcher.js';
import { invalid } from '../../shared/errors.js';
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

/** Creates the hooks of the web search. `relay` is null if model CLIs search by a tool of their own. */
export function searchHooks(quota: SearchQuota, relay: RelayParts | null) {
  const grantFor: WebSearcher['grantFor'] = (job) => new ReservedSearches(job, quota);
  const searcher: WebSearcher =
    relay === null
      ? {
          canSearch: ({ search }) => search === true,
          refusal: 'the model CLI of this service cannot search the web',
          isNative: true,
          grantFor,
        }
      : {
          canSearch: ({ ownTools }) => ownTools === undefined,
          refusal: 'cannot be used with a model CLI that has its own tools (MODEL_API_CLI_ARGS)',
          isNative: false,
          grantFor,
        };
  return {
    job: {
      /** Throws if the client may not search now, or not with these limits. */
      check: ({ search, client }) => {
        if (search === undefined) return;
        quota.check(search, client);
        const fault = relay?.server.domainFault(search) ?? null;
        if (fault !== null) throw invalid(search.path, fault);
      },
      answer: (turns, turn) =>
        turns.job.request.search === undefined || relay === null ? null : answerWithSearches(turns, turn, relay),
    },
    searcher,
  } satisfies Omit<PrimaryPart, 'handlers'>;
}

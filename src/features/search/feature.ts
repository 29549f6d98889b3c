import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { findFaults, findWarnings, keyOptions, logEvents, type SearchValues, variables } from './shared.js';

/** Web searches of models, by the tool of claude or by an MCP server of the operator. */
export const search = {
  ...emptyFeature,
  ...{ name: 'search', needs: ['protocols', 'usage', 'doors'] },
  ...{ variables, findFaults, findWarnings, keyOptions, logEvents },
  loadPrimary: async (values: SearchValues) => {
    const { createSearch } = await import('./primary.js');
    // the code that searches needs memory
    const isNeeded = typeof values.MODEL_API_SEARCH !== 'string';
    return createSearch(values, isNeeded ? (await import('./search-server.js')).SearchServer : null);
  },
} satisfies PrimaryFeature<typeof variables> & WorkerFeature;

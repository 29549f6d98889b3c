import type { WorkerCore, WorkerPart } from '../../worker/features/feature.js';
import type { calls } from './shared.js';

export function createPart({ primary }: WorkerCore<typeof calls>): WorkerPart {
  return {
    routes: [],
    jobFields: async ({ client, requestId }) => {
      const { sentences } = await primary.call('jobReasons', { client, requestId });
      return sentences.length === 0 ? {} : { why: sentences };
    },
  };
}

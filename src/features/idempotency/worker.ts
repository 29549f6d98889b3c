import type { WorkerCore, WorkerPart } from '../../worker/features/feature.js';
import { KeyedRequest, keyOf } from './keyed-request.js';
import type { calls } from './shared.js';

export function createPart({ primary }: Pick<WorkerCore<typeof calls>, 'primary'>): WorkerPart {
  return {
    routes: [],
    recorderOf: (req, res) => {
      const key = keyOf(req);
      return key === null ? null : new KeyedRequest(primary, res, key);
    },
  };
}

import type { BackgroundJobView } from '../../src/shared/background.js';
import { plainForm } from './background-harness.js';

/** Of an /ask that has succeeded. Times are milliseconds since the epoch. */
export function backgroundView(differences: Partial<BackgroundJobView> = {}): BackgroundJobView {
  return {
    id: 'some-id',
    operation: 'ask',
    requestId: 'request 1',
    form: plainForm,
    status: 'succeeded',
    position: null,
    createdAt: 1000,
    startedAt: 2000,
    endedAt: 3000,
    failure: null,
    ...differences,
  };
}

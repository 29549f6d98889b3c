import type { JobView } from '../../../src/shared/background.js';
import type { JobDone } from '../../../src/shared/job.js';
import { jobDone, plainForm } from './job-records.js';

/** Returns the view of a successful /ask job. Times are milliseconds since the epoch. */
export function backgroundView(differences: Partial<JobView> = {}): JobView {
  return {
    id: 'some-id',
    client: 'key ada',
    title: 'Hi',
    operation: 'ask',
    requestId: 'request 1',
    form: plainForm,
    status: 'succeeded',
    position: null,
    reason: null,
    createdAt: 1000,
    startedAt: 2000,
    endedAt: 3000,
    failure: null,
    isEndedByAdmin: false,
    ...differences,
  };
}

/** Returns the answer of a successful job as the primary sends it, piece by piece. */
export function answerInPieces(text: string, end: JobDone = jobDone(), length = 16 * 1024) {
  return ({ from }: { readonly from: number }) => ({ text: text.slice(from, from + length), end });
}

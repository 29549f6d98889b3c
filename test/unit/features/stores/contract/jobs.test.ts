import { endedJobOf, type JobRecord } from '../../../../../src/features/stores/contract/jobs.js';
import { jobDone, plainForm } from '../../../../support/jobs/job-records.js';

it('A stored job is reported with its end, and not before', () => {
  const record: JobRecord = {
    ...{ id: 'j1', client: 'key ada', title: '', operation: 'ask', requestId: 'r1', form: plainForm },
    ...{ status: 'succeeded', createdAt: 0, startedAt: 0, endedAt: 0, end: jobDone() },
  };
  const request = { client: 'key ada', operation: 'ask', requestId: 'r1' };
  expect(endedJobOf(record)).toEqual({ id: 'j1', request, form: plainForm, end: jobDone() });
  expect(endedJobOf({ ...record, end: null })).toBeNull();
});

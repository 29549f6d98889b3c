import type { JobRecord } from '../../../../src/features/stores/contract/jobs.js';
import { JobNotices } from '../../../../src/features/webhooks/job-notices.js';
import type { JobNotice } from '../../../../src/features/webhooks/notices.js';
import { jobDone, plainForm } from '../../../support/jobs/job-records.js';

const minuteMs = 60_000;
const now = 100 * minuteMs;

function record(id: string, differences: Partial<JobRecord> = {}): JobRecord {
  const job = {
    id,
    client: 'key ada',
    title: '',
    operation: 'ask',
    requestId: `r-${id}`,
    status: 'succeeded',
  } as const;
  const form = { route: '/ask', model: null, isStructured: false, callbackUrl: `https://example.org/${id}` } as const;
  return { ...job, form, createdAt: 0, startedAt: 0, endedAt: now, end: jobDone(), ...differences };
}

function createNotices() {
  const sent: JobNotice[] = [];
  const called: (string | undefined)[] = [];
  const notices = new JobNotices(
    { jobEnded: (job) => sent.push(job) },
    { jobEnded: ({ callbackUrl }) => called.push(callbackUrl) },
  );
  return { notices, sent, called };
}

describe('The notices of jobs', () => {
  it('go to the receiver and to the URL of the client', () => {
    const { notices, sent, called } = createNotices();
    const request = { client: 'key ada', operation: 'ask', requestId: 'r-a' } as const;
    notices.backgroundEnded({ id: 'a', request, form: record('a').form, end: jobDone() });
    const { form } = record('c', { form: plainForm });
    notices.backgroundEnded({ id: 'c', request, form: { ...form, isFollowed: true }, end: jobDone() });
    expect(sent).toEqual([{ id: 'a', request, end: jobDone(), callbackUrl: 'https://example.org/a' }]);
    expect(called).toEqual(['https://example.org/a']);
  });

  it('are repeated at the start for the newest jobs that ended in the last ten minutes, if they are durable', async () => {
    const { notices, sent } = createNotices();
    const jobs = [
      record('new', { endedAt: now - 9 * minuteMs }),
      record('running', { endedAt: null, end: null, status: 'running' }),
      record('old', { endedAt: now - 11 * minuteMs }),
    ];
    const limits: number[] = [];
    const list = async ({ limit }: { readonly limit: number }) => {
      limits.push(limit);
      return { jobs, next: null };
    };
    await notices.repeatLast({ isDurable: false, listJobs: list }, now);
    expect(limits).toEqual([]);
    await notices.repeatLast({ isDurable: true, listJobs: list }, now);
    expect([limits, sent.map(({ id }) => id)]).toEqual([[50], ['new']]);
  });
});

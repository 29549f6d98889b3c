import type { JobList as JobListPage, ListedJob } from '../../shared/api/jobs.js';
import { timeText } from '../format.mjs';
import type { Listing } from '../list-pages.mjs';
import { hrefOf } from '../router.mjs';
import { EmptyState } from '../ui/empty-state.mjs';
import { html } from '../ui/html.mjs';
import { PagedList, type ShownList } from '../ui/paged-list.mjs';
import { StatusDot } from '../ui/status-dot.mjs';
import { statusText, toneOf } from './job-words.mjs';

/** One's own background jobs, the newest one first. */
export const jobListing: Listing<JobListPage, ListedJob> = {
  path: '/jobs',
  itemsOf: ({ jobs }) => jobs,
  idOf: ({ job_id: id }) => id,
  orderOf: ({ created_at: at }) => at,
};

export function JobList(props: ShownList<JobListPage, ListedJob>) {
  return html`<${PagedList} ...${props} page="jobs" label="Background jobs" entry=${entryOf} none=${html`<${NoJobs} />`} />`;
}

function entryOf(job: ListedJob) {
  return html`
    <${StatusDot} tone=${toneOf(job)} label=${statusText(job)} />
    <small class="muted figure">${timeText(job.created_at)} · ${job.operation}</small>
  `;
}

function NoJobs() {
  return html`<${EmptyState} title="No background jobs">
    <p>On the page <a href=${hrefOf('ask')}>Ask</a>, the options have “Ask in the background”. Such a job goes on when you leave, and its answer is kept here for a while.</p>
  <//>`;
}

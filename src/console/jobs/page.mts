import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { JobList as JobListPage, ListedJob } from '../../shared/api/jobs.js';
import { useParts } from '../base/context.mjs';
import { timeText } from '../base/format.mjs';
import { type Listing, ListPages, type ListView } from '../base/list-pages.mjs';
import { useValue } from '../base/observable.mjs';
import { hrefOf, type PageProps } from '../base/router.mjs';
import { html } from '../ui/html.mjs';
import { EmptyState, StatusDot } from '../ui/notices.mjs';
import { PagedList, type ShownList } from '../ui/paged-list.mjs';
import { statusText, toneOf } from './followed-job.mjs';
import { OpenJob } from './open-job.mjs';

const againMs = 3000;

/** One's own jobs that outlive their request. */
export function JobsPage({ params }: PageProps) {
  const { api, link, clock } = useParts();
  const pages = useMemo(() => new ListPages(api, jobListing), [api]);
  const view = useValue(pages.view);
  const isUp = useValue(link.state) === 'up';
  const [told, setTold] = useState('');
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (!isUp) return;
    void pages.readFirst();
    return clock.every(againMs, () => void (mayChange(pages.view.value) && pages.readFirst()));
  }, [pages, clock, isUp]);
  const leave = (id: string) => {
    pages.forget(id);
    setTold('The job is forgotten.');
    location.hash = hrefOf('jobs');
    heading.current?.focus();
  };
  const { id } = params;
  return html`
    <div class="row between">
      <h1 ref=${heading} tabindex="-1">Background jobs</h1>
      <span class="muted" role="status">${id === undefined && told}</span>
    </div>
    <div class="shelf" data-open=${id !== undefined}>
      <${JobList} pages=${pages} view=${view} openId=${id} />
      ${id !== undefined && html`<${OpenJob} key=${id} id=${id} onChanged=${() => void pages.readFirst()} onForgotten=${leave} />`}
      ${id === undefined && view.items?.length !== 0 && html`<p class="muted hint">Choose one to look at it.</p>`}
    </div>
  `;
}

/** Whether any of those that are shown may change by itself. */
function mayChange({ items }: ListView<ListedJob>): boolean {
  return items?.some(({ ended_at: ended }) => ended === null) ?? false;
}

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

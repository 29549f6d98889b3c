import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { ListedJob } from '../../shared/api/jobs.js';
import { useParts } from '../context.mjs';
import { JobList, jobListing } from '../jobs/job-list.mjs';
import { OpenJob } from '../jobs/open-job.mjs';
import { ListPages, type ListView } from '../list-pages.mjs';
import { useValue } from '../observable.mjs';
import type { PageProps } from '../pages.mjs';
import { hrefOf } from '../router.mjs';
import { html } from '../ui/html.mjs';

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

import { html } from 'htm/preact';
import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { JobBody, JobList as JobListPage, ListedJob } from '../../shared/api/jobs.js';
import { useAction, useParts } from '../base/context.mjs';
import { ApiError } from '../base/failures.mjs';
import { timeText } from '../base/format.mjs';
import { useValue } from '../base/observable.mjs';
import { hrefOf, type PageProps } from '../base/router.mjs';
import { AnswerText, AnswerValue, useMarkdown } from '../ui/answer.mjs';
import { CopyButton } from '../ui/controls.mjs';
import { EmptyState, ErrorNotice, StatusDot } from '../ui/notices.mjs';
import { type Listing, ListPages, type ListView, PagedList, type ShownList } from '../ui/paged-list.mjs';
import { answerOf, FollowedJob, statusText, timesText, titleOf, toneOf } from './followed-job.mjs';

const againMs = 3000;

/** The background jobs of the reader. */
export function JobsPage({ params }: PageProps) {
  const { api, link, clock } = useParts();
  const pages = useMemo(() => new ListPages(api, jobListing), [api]);
  const view = useValue(pages.view);
  const isUp = useValue(link.state) === 'up';
  const [notice, setNotice] = useState('');
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (!isUp) return;
    void pages.readFirst();
    return clock.every(againMs, () => void (mayChange(pages.view.value) && pages.readFirst()));
  }, [pages, clock, isUp]);
  const leave = (id: string) => {
    pages.forget(id);
    setNotice('The job was deleted.');
    location.hash = hrefOf('jobs');
    heading.current?.focus();
  };
  const { id } = params;
  return html`
    <div class="row between">
      <h1 ref=${heading} tabindex="-1">Background jobs</h1>
      <span class="muted" role="status">${id === undefined && notice}</span>
    </div>
    <div class="shelf" data-open=${id !== undefined}>
      <${JobList} pages=${pages} view=${view} openId=${id} />
      ${id !== undefined && html`<${OpenJob} key=${id} id=${id} onChanged=${() => void pages.readFirst()} onForgotten=${leave} />`}
      ${id === undefined && view.items?.length !== 0 && html`<p class="muted hint">Choose a job to see it.</p>`}
    </div>
  `;
}

/** Whether any listed job is still open. */
function mayChange({ items }: ListView<ListedJob>): boolean {
  return items?.some(({ ended_at: ended }) => ended === null) ?? false;
}

/** The newest job first. */
export const jobListing: Listing<JobListPage, ListedJob> = {
  path: '/jobs',
  itemsOf: ({ jobs }) => jobs,
  idOf: ({ job_id: id }) => id,
  orderOf: ({ created_at: at }) => at,
};

export function JobList(props: ShownList<JobListPage, ListedJob>) {
  return html`<${PagedList} ...${props} href=${(id: string) => hrefOf('jobs', { id })} label="Background jobs" entry=${entryOf} none=${html`<${NoJobs} />`} />`;
}

function entryOf(job: ListedJob, link: (content: ComponentChildren) => ComponentChildren) {
  return link(html`
    <span class="cut">${titleOf(job)}</span>
    <${StatusDot} tone=${toneOf(job)} label=${statusText(job)} />
    <small class="muted figure">${timeText(job.created_at)} · ${job.operation}</small>
  `);
}

function NoJobs() {
  return html`<${EmptyState} title="No background jobs">
    <p>The page <a href=${hrefOf('ask')}>Ask</a> has “Ask in the background” beside “Send”. Such a job continues when you close the page, and its answer stays here for a while.</p>
  <//>`;
}

interface OpenJobProps {
  readonly id: string;
  /** Called when the job changes its state: the list may be out of date. */
  readonly onChanged: () => void;
  readonly onForgotten: (id: string) => void;
}

/** One background job, followed until it has ended. */
export function OpenJob({ id, onChanged, onForgotten }: OpenJobProps) {
  const { api, clock } = useParts();
  const followed = useMemo(() => new FollowedJob(api, clock, id), [api, clock, id]);
  const { job, text, failure } = useValue(followed.view);
  useEffect(() => {
    void followed.follow();
    return () => followed.leave();
  }, [followed]);
  useEffect(onChanged, [job?.status]);
  return html`<section class="talk" aria-label="Background job">
    <a class="back" href=${hrefOf('jobs')}>← All background jobs</a>
    ${failure !== null && html`<${ErrorNotice} error=${failure} />`}
    ${job === null && failure === null && html`<p class="muted row"><span class="spinner" />Reading the job</p>`}
    ${job !== null && html`<${Heading} job=${job} followed=${followed} onForgotten=${onForgotten} />`}
    ${job !== null && html`<${JobAnswer} job=${job} text=${text} />`}
  </section>`;
}

interface JobHeadingProps {
  readonly job: JobBody;
  readonly followed: FollowedJob;
  readonly onForgotten: (id: string) => void;
}

/** Takes the focus, for readers who use the keyboard. */
function Heading({ job, followed, onForgotten }: JobHeadingProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  const { run, failure } = useAction();
  useEffect(() => heading.current?.focus(), [job.job_id]);
  const hasEnded = job.ended_at !== null;
  const remove = () => run(followed.remove(), (isForgotten) => isForgotten && onForgotten(job.job_id));
  return html`<header>
    <span class="unseen" role="status">${statusText(job)}</span>
    <h2 ref=${heading} tabindex="-1">${titleOf(job)}</h2>
    <p><${StatusDot} tone=${toneOf(job)} label=${statusText(job)} /></p>
    <small class="muted figure">${job.operation} · sent ${timeText(job.created_at)}${timesText(job) && ` · ${timesText(job)}`} · <code>${job.job_id}</code></small>
    <div class="row">
      <button type="button" class="button danger" onClick=${remove}>${hasEnded ? 'Delete' : 'Cancel'}</button>
    </div>
    ${failure !== null && html`<${ErrorNotice} error=${failure} />`}
  </header>`;
}

/** The answer so far, and at the end the whole answer. */
function JobAnswer({ job, text }: { readonly job: JobBody; readonly text: string }) {
  const answer = job.result === undefined ? { text, value: undefined, conversationId: null } : answerOf(job.result);
  const markdown = useMarkdown(answer.text !== '');
  if (job.error !== undefined) return html`<${ErrorNotice} error=${new ApiError(0, job.error)} />`;
  const isWhole = job.ended_at !== null;
  return html`<article class="answer">
    <h3 class="unseen">The model</h3>
    ${answer.value !== undefined && html`<${AnswerValue} value=${answer.value} />`}
    ${answer.value === undefined && answer.text !== '' && html`<${AnswerText} text=${answer.text} isWhole=${isWhole} markdown=${markdown} />`}
    <div class="row">
      ${isWhole && answer.text !== '' && html`<${CopyButton} text=${() => answer.text} label="Copy" />`}
      ${answer.conversationId !== null && html`<a class="button" href=${hrefOf('ask', { conversation: answer.conversationId })}>Continue in Ask</a>`}
    </div>
  </article>`;
}

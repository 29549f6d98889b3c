import { html } from 'htm/preact';
import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { DeletedJob, JobBody, JobList as JobListPage, ListedJob } from '../../shared/api/jobs.js';
import type { Api } from '../base/api.mjs';
import { useAction, useParts } from '../base/context.mjs';
import { ApiError, asError, isAbort, ServerGone } from '../base/failures.mjs';
import { durationText, timeText } from '../base/format.mjs';
import { Observable, useValue } from '../base/observable.mjs';
import { delay, type PageClock } from '../base/page-clock.mjs';
import { hrefOf, type PageProps } from '../base/router.mjs';
import { AnswerText, useMarkdown } from '../ui/answer.mjs';
import { useCaller } from '../ui/caller.mjs';
import { CopyButton } from '../ui/controls.mjs';
import { EmptyState, ErrorNotice, StatusDot, type Tone } from '../ui/notices.mjs';
import { type Listing, ListPages, PagedList, type ShownList } from '../ui/paged-list.mjs';

const betweenReadsMs = 3000;

/** Shows the user's jobs; for an administrator also the jobs of all clients. */
export function JobsPage({ params }: PageProps) {
  const { api, link, clock } = useParts();
  const [isOfAll, setOfAll] = useState(false);
  const pages = useMemo(() => new ListPages(api, isOfAll ? allJobs : jobListing), [api, isOfAll]);
  const view = useValue(pages.view);
  const isUp = useValue(link.state) === 'up';
  const [notice, setNotice] = useState('');
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (!isUp) return;
    void pages.readFirst();
    return clock.every(betweenReadsMs, () => void (pages.view.value.state === 'reading' || pages.readFirst()));
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
      <h1 ref=${heading} tabindex="-1">Jobs</h1>
      <span class="muted" role="status">${id === undefined && notice}</span>
      <${AllSwitch} isOn=${isOfAll} onSwitch=${setOfAll} />
    </div>
    <div class="shelf" data-open=${id !== undefined}>
      <${JobList} pages=${pages} view=${view} openId=${id} />
      ${id !== undefined && html`<${OpenJob} key=${id} id=${id} onChanged=${() => void pages.readFirst()} onForgotten=${leave} />`}
      ${id === undefined && view.items?.length !== 0 && html`<p class="muted hint">${isOfAll ? 'Only the client of a job can read it.' : 'Choose a background job to see its answer.'}</p>`}
    </div>
  `;
}

interface AllSwitchProps {
  readonly isOn: boolean;
  readonly onSwitch: (isOn: boolean) => void;
}

/** Button that shows the jobs of all clients, which only an administrator may see. */
function AllSwitch({ isOn, onSwitch }: AllSwitchProps) {
  const caller = useCaller();
  if (caller === null || typeof caller === 'string' || caller.scopes?.includes('admin') !== true) return null;
  return html`<button type="button" class="button quiet small" aria-pressed=${isOn} onClick=${() => onSwitch(!isOn)}>Jobs of all clients</button>`;
}

/** List of the jobs: first the jobs of open requests, then background jobs, each with the newest first. */
export const jobListing: Listing<JobListPage, ListedJob> = {
  path: '/jobs',
  itemsOf: ({ jobs }) => jobs,
  idOf: ({ job_id: id }) => id,
  orderOf: ({ background, created_at: at }) => `${background === false ? 'open' : 'background'} ${at}`,
};

const allJobs: Listing<JobListPage, ListedJob> = { ...jobListing, query: { all: 'true' } };

function JobList(props: ShownList<JobListPage, ListedJob>) {
  const { pages } = props;
  const entry = (job: ListedJob, link: (content: ComponentChildren) => ComponentChildren) =>
    html`<${JobEntry} job=${job} link=${link} onCancelled=${() => void pages.readFirst()} />`;
  return html`<${PagedList} ...${props} href=${(id: string) => hrefOf('jobs', { id })} label="Jobs" entry=${entry} none=${html`<${NoJobs} />`} />`;
}

interface JobEntryProps {
  readonly job: ListedJob;
  readonly link: (content: ComponentChildren) => ComponentChildren;
  readonly onCancelled: () => void;
}

/**
 * Shows a job in the list. A background job of the user is a link to its page, which has the button to cancel or
 * delete it. Any other job has a button in the list, which cancels it.
 */
function JobEntry({ job, link, onCancelled }: JobEntryProps) {
  const { client, background, ended_at: ended } = job;
  const { api } = useParts();
  const { run, isRunning, failure } = useAction();
  const kind = background === false ? job.operation : `${job.operation} in the background`;
  const text = html`
    <span class="cut">${client ?? titleOf(job)}</span>
    <${StatusDot} tone=${toneOf(job)} label=${statusText(job)} />
    <small class="muted figure">${timeText(job.created_at)} · ${kind}</small>
  `;
  if (client === undefined && background !== false) return link(text);
  const cancel = () => run(cancelJob(api, job.job_id), onCancelled);
  return html`<div class="row between unlinked">
    <div>${text}</div>
    ${ended === null && html`<button type="button" class="button small danger" disabled=${isRunning} onClick=${cancel}>Cancel<span class="unseen"> ${client ?? titleOf(job)}</span></button>`}
    ${failure !== null && html`<${ErrorNotice} error=${failure} />`}
  </div>`;
}

function NoJobs() {
  return html`<${EmptyState} title="No jobs">
    <p>Your requests appear here while they wait or run. Start a background job with “Ask in the background” on the page <a href=${hrefOf('ask')}>Ask</a>. It keeps running when you close the page; its answer stays here for a day by default.</p>
  <//>`;
}

interface OpenJobProps {
  readonly id: string;
  /** Called when the state of the job changes: the list may be out of date. */
  readonly onChanged: () => void;
  readonly onForgotten: (id: string) => void;
}

/** Shows one background job, and follows it until it has ended. */
function OpenJob({ id, onChanged, onForgotten }: OpenJobProps) {
  const { api, clock } = useParts();
  const followed = useMemo(() => new FollowedJob(api, clock, id), [api, clock, id]);
  const { job, text, failure } = useValue(followed.view);
  useEffect(() => {
    void followed.follow();
    return () => followed.leave();
  }, [followed]);
  useEffect(onChanged, [job?.status]);
  return html`<section class="talk" aria-label="Background job">
    <a class="back" href=${hrefOf('jobs')}>← All jobs</a>
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

/** Shows the heading of a job. Moves the focus to it, for users of a keyboard. */
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

/** Shows the answer so far, and at the end the whole answer. */
function JobAnswer({ job, text }: { readonly job: JobBody; readonly text: string }) {
  const answer =
    job.result === undefined ? { text, thoughts: '', value: undefined, conversationId: null } : answerOf(job.result);
  const markdown = useMarkdown(answer.text !== '');
  const isWhole = job.ended_at !== null;
  return html`<article class="answer">
    <h3 class="unseen">The model</h3>
    <${AnswerText} text=${answer.text} thoughts=${answer.thoughts} value=${answer.value} isWhole=${isWhole} markdown=${markdown} />
    ${job.error !== undefined && html`<${ErrorNotice} error=${new ApiError(0, job.error)} hasText=${answer.text !== ''} />`}
    <div class="row">
      ${isWhole && answer.text !== '' && html`<${CopyButton} text=${() => answer.text} label="Copy" />`}
      ${answer.conversationId !== null && html`<a class="button" href=${hrefOf('ask', { conversation: answer.conversationId })}>Continue in Ask</a>`}
    </div>
  </article>`;
}

/** Returns the path of a job in the API. */
function pathOfJob(id: string): string {
  return `/jobs/${encodeURIComponent(id)}`;
}

/**
 * Cancels a job that waits or runs. A background job that has ended is unchanged. A job of an open request is
 * unknown after its end, so this function ignores the status 404.
 */
async function cancelJob(api: Pick<Api, 'json'>, id: string): Promise<void> {
  await api.json<DeletedJob>(`${pathOfJob(id)}?keep_ended=true`, { method: 'DELETE' }).catch((error: unknown) => {
    if (!(error instanceof ApiError && error.status === 404)) throw error;
  });
}

const tones: Readonly<Record<ListedJob['status'], Tone>> = {
  queued: 'idle',
  running: 'warn',
  succeeded: 'good',
  failed: 'bad',
  cancelled: 'idle',
};

function toneOf({ status }: Pick<ListedJob, 'status'>): Tone {
  return tones[status];
}

/**
 * Returns the title of a job. Without one, returns its ID: the prompt is only an image, or an older version accepted
 * the job.
 */
export function titleOf({ title, job_id: id }: Pick<ListedJob, 'title' | 'job_id'>): string {
  return title?.trim() || `Job ${id}`;
}

function statusText({ status, position }: Pick<ListedJob, 'status' | 'position'>): string {
  return position === null ? status : `${status}, place ${position}`;
}

/** Formats the times of a job: `waited 2 s, ran 40 s`; empty until it starts, without the second part until it ends. */
export function timesText({ created_at: created, started_at: started, ended_at: ended }: ListedJob): string {
  const between = (from: string, to: string) => durationText(Math.max(0, Date.parse(to) - Date.parse(from)));
  const end = started ?? ended;
  if (end === null) return '';
  const waited = `waited ${between(created, end)}`;
  return started === null || ended === null ? waited : `${waited}, ran ${between(started, ended)}`;
}

/** Answer of a job: a text or a value. */
interface JobAnswerShown {
  readonly text: string;
  readonly thoughts: string;
  readonly value: unknown;
  readonly conversationId: string | null;
}

interface WrittenItem {
  readonly summary?: readonly { readonly text?: string }[];
  readonly arguments?: string;
  readonly content?: readonly { readonly text?: string }[];
}

/** Returns what to show of the result of a job, which has the form of the API that accepted the job. */
export function answerOf(result: NonNullable<JobBody['result']>): JobAnswerShown {
  const { response, thoughts, structured, conversation_id: id, output } = result as Readonly<Record<string, unknown>>;
  const items = (output ?? []) as readonly WrittenItem[];
  const written = items.map((item) => item.arguments ?? (item.content ?? []).map(({ text }) => text ?? '').join(''));
  const text = typeof response === 'string' ? response : written.join('');
  const summaries = items.flatMap(({ summary = [] }) => summary.map(({ text: part }) => part ?? ''));
  const shown = typeof thoughts === 'string' ? thoughts : summaries.join('\n\n');
  return { text, thoughts: shown, value: structured, conversationId: typeof id === 'string' ? id : null };
}

interface ShownJob {
  /** The job; null before it is read. */
  readonly job: JobBody | null;
  /** Text of the answer so far, while the job runs. */
  readonly text: string;
  readonly failure: Error | null;
}

/** Pause before the next stream of events, so that a stream that ends at once is not opened again in a tight loop. */
const betweenStreamsMs = 250;

/** Follows one background job until the user leaves it. */
class FollowedJob {
  readonly view = new Observable<ShownJob>({ job: null, text: '', failure: null });
  readonly #api: Pick<Api, 'json' | 'events'>;
  readonly #clock: PageClock;
  readonly #path: string;
  readonly #leaving = new AbortController();

  constructor(api: Pick<Api, 'json' | 'events'>, clock: PageClock, id: string) {
    this.#api = api;
    this.#clock = clock;
    this.#path = pathOfJob(id);
  }

  /** Reads the events of the job until it ends. If the stream breaks, opens a new one, which repeats every event. */
  async follow(): Promise<void> {
    const { signal } = this.#leaving;
    try {
      for (let isOpen = await this.#read(); isOpen; isOpen = await this.#read()) {
        await this.#readEvents();
        await delay(this.#clock, betweenStreamsMs, signal);
      }
    } catch (error) {
      if (!isAbort(error)) this.#set({ failure: asError(error) });
    }
  }

  leave(): void {
    this.#leaving.abort();
  }

  /** Cancels a job that is open, or removes one that has ended. Resolves with whether it was removed. */
  async remove(): Promise<boolean> {
    const { deleted } = await this.#api.json<DeletedJob>(this.#path, { method: 'DELETE' });
    return deleted;
  }

  /** Reads the job. Resolves with whether it is still open. */
  async #read(): Promise<boolean> {
    const job = await this.#api.json<JobBody>(this.#path, { signal: this.#leaving.signal });
    this.#set({ job, failure: null });
    return job.ended_at === null;
  }

  async #readEvents(): Promise<void> {
    let text = '';
    try {
      for await (const { event, data } of this.#api.events(`${this.#path}/events`, { signal: this.#leaving.signal })) {
        const { job } = this.view.value;
        const content = JSON.parse(data) as { readonly text?: string; readonly position?: number };
        if (event === 'queued' && job) this.#set({ job: { ...job, position: content.position ?? null } });
        if (event === 'started' && job) this.#set({ job: { ...job, status: 'running', position: null } });
        if (event !== 'delta') continue;
        text += content.text ?? '';
        this.#set({ text });
      }
    } catch (error) {
      if (!(error instanceof ServerGone)) throw error;
    }
  }

  #set(change: Partial<ShownJob>): void {
    if (!this.#leaving.signal.aborted) this.view.set({ ...this.view.value, ...change });
  }
}

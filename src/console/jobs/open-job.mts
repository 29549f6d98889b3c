import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { JobBody } from '../../shared/api/jobs.js';
import { useMarkdown } from '../ask/use-markdown.mjs';
import { useParts } from '../base/context.mjs';
import { ApiError, asError } from '../base/failures.mjs';
import { timeText } from '../base/format.mjs';
import { useValue } from '../base/observable.mjs';
import { hrefOf } from '../base/router.mjs';
import { CodeBlock, CopyButton } from '../ui/controls.mjs';
import { html } from '../ui/html.mjs';
import { ErrorNotice, StatusDot } from '../ui/notices.mjs';
import { answerOf, FollowedJob, statusText, timesText, toneOf } from './followed-job.mjs';

interface OpenJobProps {
  readonly id: string;
  /** It has gone on: the list may be old. */
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

/** Takes the focus, so that whoever has opened it by the keyboard stands in it. */
function Heading({ job, followed, onForgotten }: JobHeadingProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  const [failure, setFailure] = useState<Error | null>(null);
  useEffect(() => heading.current?.focus(), [job.job_id]);
  const hasEnded = job.ended_at !== null;
  const remove = () => {
    setFailure(null);
    followed.remove().then(
      (isForgotten) => isForgotten && onForgotten(job.job_id),
      (error: unknown) => setFailure(asError(error)),
    );
  };
  return html`<header>
    <span class="unseen" role="status">${statusText(job)}</span>
    <h2 ref=${heading} tabindex="-1"><${StatusDot} tone=${toneOf(job)} label=${statusText(job)} /></h2>
    <small class="muted figure">${job.operation} · sent ${timeText(job.created_at)}${timesText(job) && ` · ${timesText(job)}`} · <code>${job.job_id}</code></small>
    <div class="row">
      <button type="button" class="button danger" onClick=${remove}>${hasEnded ? 'Forget' : 'Cancel'}</button>
    </div>
    ${failure !== null && html`<${ErrorNotice} error=${failure} />`}
  </header>`;
}

/** What has come of it, and in the end all of it. */
function JobAnswer({ job, text }: { readonly job: JobBody; readonly text: string }) {
  const answer = job.result === undefined ? { text, value: undefined, conversationId: null } : answerOf(job.result);
  const markdown = useMarkdown(answer.text !== '');
  if (job.error !== undefined) return html`<${ErrorNotice} error=${new ApiError(0, job.error)} />`;
  const isWhole = job.ended_at !== null;
  return html`<article class="answer">
    <h3 class="unseen">The model</h3>
    ${shown(answer, markdown, isWhole)}
    <div class="row">
      ${isWhole && answer.text !== '' && html`<${CopyButton} text=${() => answer.text} label="Copy" />`}
      ${answer.conversationId !== null && html`<a class="button" href=${hrefOf('ask', { conversation: answer.conversationId })}>Go on in Ask</a>`}
    </div>
  </article>`;
}

function shown(
  { text, value }: ReturnType<typeof answerOf>,
  markdown: ReturnType<typeof useMarkdown>,
  isWhole: boolean,
) {
  if (value !== undefined) return html`<${CodeBlock} code=${JSON.stringify(value, null, 2)} language="json" />`;
  if (text === '') return null;
  return markdown === null
    ? html`<p class="source">${text}</p>`
    : html`<${markdown} text=${text} isWhole=${isWhole} />`;
}

import { useEffect, useMemo, useState } from 'preact/hooks';
import { useParts } from '../context.mjs';
import { BreakerNotices } from '../now/breaker-notices.mjs';
import { DrainNotice, Headline, OldNotice } from '../now/headline.mjs';
import { LastHour } from '../now/last-hour.mjs';
import { CliProcesses, Workers } from '../now/processes.mjs';
import { Queue } from '../now/queue.mjs';
import { ReadinessCard } from '../now/readiness.mjs';
import { Reasons } from '../now/reasons.mjs';
import { Slots } from '../now/slots.mjs';
import { type FollowedStatus, StatusFollower } from '../now/status-follower.mjs';
import { useValue } from '../observable.mjs';
import type { PageProps } from '../pages.mjs';
import { ErrorNotice } from '../ui/error-notice.mjs';
import { html } from '../ui/html.mjs';
import { useNow } from '../use-now.mjs';

/** What the service does at this moment. */
export function NowPage(_: PageProps) {
  const { api, link, clock } = useParts();
  const [round, setRound] = useState(0);
  const follower = useMemo(() => new StatusFollower(api, link, clock), [api, link, clock, round]);
  useEffect(() => follower.start(), [follower]);
  const view = useValue(follower.view);
  return html`<div class="now">
    ${!('status' in view) && html`<h1>Now</h1>`}
    ${view.kind === 'opening' && html`<p class="muted row"><span class="spinner" />Reading the status</p>`}
    ${view.kind === 'refused' && html`<${ErrorNotice} error=${view.error} onRetry=${() => setRound((count) => count + 1)} />`}
    ${'status' in view && html`<${Board} view=${view} />`}
  </div>`;
}

type ShownStatus = Extract<FollowedStatus, { readonly kind: 'live' | 'old' }>;

/** Ages stand still in a status that is old: nobody knows whether they still hold. */
function Board({ view }: { readonly view: ShownStatus }) {
  const now = useNow();
  const { status, aheadMs } = view;
  const nowMs = (view.kind === 'old' ? view.sinceMs : now) + aheadMs;
  const hour = useMemo(() => html`<${LastHour} minutes=${status.last_hour} />`, [status.last_hour]);
  const { may_recheck: mayRecheck } = status.service;
  const readiness = useMemo(
    () => html`<${ReadinessCard} checks=${status.checks} mayRecheck=${mayRecheck} />`,
    [status.checks, mayRecheck],
  );
  return html`
    <${Headline} service=${status.service} queue=${status.queue} isLive=${view.kind === 'live'} nowMs=${nowMs} />
    <${OldNotice} view=${view} nowMs=${now} />
    <${DrainNotice} service=${status.service} nowMs=${nowMs} />
    <${Reasons} service=${status.service} queue=${status.queue} nowMs=${nowMs} />
    <${BreakerNotices} breaker=${status.breaker} reasons=${status.service.reasons} nowMs=${nowMs} />
    <div class="board">
      <${Slots} slots=${status.slots} nowMs=${nowMs} />
      <${Queue} queue=${status.queue} background=${status.background_jobs} nowMs=${nowMs} />
      ${hour}
      ${readiness}
      <${CliProcesses} counts=${status.cli_processes} />
      <${Workers} workers=${status.workers} />
    </div>
  `;
}

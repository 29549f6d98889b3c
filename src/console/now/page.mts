import { useEffect, useMemo, useState } from 'preact/hooks';
import { useNow, useParts } from '../base/context.mjs';
import { useValue } from '../base/observable.mjs';
import type { PageProps } from '../base/router.mjs';
import { html } from '../ui/html.mjs';
import { ErrorNotice } from '../ui/notices.mjs';
import { CliProcesses, Queue, Slots, Workers } from './cards.mjs';
import { LastHour } from './last-hour.mjs';
import { BreakerNotices, DrainNotice, Headline, OldNotice, Reasons } from './notices.mjs';
import { ReadinessCard } from './readiness.mjs';
import { type FollowedStatus, StatusFollower } from './status-follower.mjs';

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

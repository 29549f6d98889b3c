import type { StatusBody } from '../../shared/api/status.js';
import { ageText, momentText } from '../times.mjs';
import { html } from '../ui/html.mjs';
import { StatusDot } from '../ui/status-dot.mjs';
import { standingOf } from './reasons.mjs';
import type { FollowedStatus } from './status-follower.mjs';

type ServiceBody = StatusBody['service'];

interface HeadlineProps {
  readonly service: ServiceBody;
  readonly queue: StatusBody['queue'];
  readonly isLive: boolean;
  /** By the clock of the server. */
  readonly nowMs: number;
}

/** How the service is, in one line. */
export function Headline({ service, queue, isLive, nowMs }: HeadlineProps) {
  const { version, started_at: startedAt } = service;
  const [tone, label] = standingOf({ service, queue });
  return html`<div class="row between">
    <div class="row headline">
      <h1>Now</h1>
      <div class="row headline" role="status">
        <${StatusDot} tone=${tone} label=${label} />
        <${StatusDot} tone=${isLive ? 'good' : 'warn'} label=${isLive ? 'Live' : 'Not live'} />
      </div>
    </div>
    <small class="muted figure">prompt-relay ${version} · up for ${ageText(nowMs - Date.parse(startedAt))}</small>
  </div>`;
}

/** The end of the service is near. */
export function DrainNotice({ service, nowMs }: Pick<HeadlineProps, 'service' | 'nowMs'>) {
  if (service.status !== 'draining') return null;
  const { drain_ends_at: endsAt } = service;
  const left = endsAt !== null && ageText(Date.parse(endsAt) - nowMs);
  return html`<div class="notice warn">
    <strong>The service is draining</strong>
    <p>
      It takes no new jobs; those that run may end.${endsAt !== null && ` After ${momentText(endsAt, nowMs)}, in ${left}, it ends the rest.`}
    </p>
  </div>`;
}

/** A moment without the stream, as when a worker is replaced, is not worth a word. */
const quietMs = 1500;

/** Says so when what stands on the page may not be true any more. */
export function OldNotice({ view, nowMs }: { readonly view: FollowedStatus; readonly nowMs: number }) {
  if (view.kind !== 'old' || nowMs - view.sinceMs < quietMs) return null;
  return html`<div class="notice warn">
    <strong>This is old</strong>
    <p>Nothing has come since ${momentText(view.sinceMs, nowMs)}, ${ageText(nowMs - view.sinceMs)} ago. All below is as it was then.</p>
  </div>`;
}

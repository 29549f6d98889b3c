import type { ReasonBody } from '../../shared/api/health.js';
import type { StatusBody } from '../../shared/api/status.js';
import { sentenceOf } from '../failures.mjs';
import { plural } from '../format.mjs';
import { momentText } from '../times.mjs';
import { html } from '../ui/html.mjs';
import type { Tone } from '../ui/status-dot.mjs';

type ServiceAndQueue = Pick<StatusBody, 'service' | 'queue'>;

/** How the service is, in a word or two. */
export function standingOf({ service, queue }: ServiceAndQueue): readonly [tone: Tone, label: string] {
  if (service.status === 'draining') return ['warn', 'Draining'];
  if (service.status === 'degraded') return ['bad', 'Degraded'];
  if (queue.full_since !== null) return ['warn', 'Queue full'];
  return queue.refused_last_5_minutes > 0 ? ['warn', 'Requests refused'] : ['good', 'Healthy'];
}

interface ReasonsProps extends ServiceAndQueue {
  /** By the clock of the server. */
  readonly nowMs: number;
}

/** Why the service is not just healthy. It shows times, not ages: a screen reader would read each second of an age. */
export function Reasons({ service, queue, nowMs }: ReasonsProps) {
  const reasons = service.reasons.map((reason) => reasonText(reason, nowMs));
  const pressure = pressureTexts(queue, nowMs);
  return html`
    ${reasons.length > 0 && html`<${Sentences} tone="bad" sentences=${reasons} />`}
    ${pressure.length > 0 && html`<${Sentences} tone="warn" sentences=${pressure} />`}
  `;
}

function Sentences({ tone, sentences }: { readonly tone: Tone; readonly sentences: readonly string[] }) {
  return html`<div class="notice ${tone}" role="status">${sentences.map((text) => html`<p>${text}</p>`)}</div>`;
}

export function reasonText({ message, until }: ReasonBody, nowMs: number): string {
  const next = until === undefined ? '' : ` No job is started before ${momentText(until, nowMs)}.`;
  return `${sentenceOf({ message })}${next}`;
}

export function pressureTexts(queue: StatusBody['queue'], nowMs: number): string[] {
  const { full_since: fullSince, refused_last_5_minutes: refused } = queue;
  const full = fullSince !== null && `The queue has been full since ${momentText(fullSince, nowMs)}.`;
  const refusals = refused > 0 && `${plural(refused, 'request was', 'requests were')} refused in the last 5 minutes.`;
  return [full, refusals].filter((text) => text !== false);
}

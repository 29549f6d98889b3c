import { html } from 'htm/preact';
import type { BreakerBody, ReasonBody } from '../../shared/api/health.js';
import type { StatusBody } from '../../shared/api/status.js';
import { sentenceOf } from '../base/failures.mjs';
import { ageText, momentText, plural } from '../base/format.mjs';
import { StatusDot, type Tone } from '../ui/notices.mjs';
import type { FollowedStatus } from './status-follower.mjs';

type ServiceAndQueue = Pick<StatusBody, 'service' | 'queue'>;

/** Returns the state of the service in a word or two. */
export function standingOf({ service, queue }: ServiceAndQueue): readonly [tone: Tone, label: string] {
  if (service.status === 'draining') return ['warn', 'Draining'];
  if (service.status === 'degraded') return ['bad', 'Degraded'];
  if (queue.full_since !== null) return ['warn', 'Queue full'];
  return queue.refused_last_5_minutes > 0 ? ['warn', 'Requests refused'] : ['good', 'Healthy'];
}

interface ReasonsProps extends ServiceAndQueue {
  /** Time of the server's clock in milliseconds since the epoch. */
  readonly nowMs: number;
}

/** Shows why the service is not healthy, with times instead of ages: a screen reader would read an age each second. */
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
  return `${sentenceOf({ message }, nowMs)}${next}`;
}

export function renewalText(fault: StatusBody['renewals'][number], nowMs: number): string {
  const { cli, account, message, until } = fault;
  const next = until === null ? '' : ` The last pause ends at ${momentText(until, nowMs)}.`;
  return `${account === undefined ? cli : `${cli}@${account}`}: ${message}.${next}`;
}

export function pressureTexts(queue: StatusBody['queue'], nowMs: number): string[] {
  const { full_since: fullSince, refused_last_5_minutes: refused } = queue;
  const full = fullSince !== null && `The queue has been full since ${momentText(fullSince, nowMs)}.`;
  const refusals = refused > 0 && `${plural(refused, 'request was', 'requests were')} refused in the last 5 minutes.`;
  return [full, refusals].filter((text) => text !== false);
}

type ServiceBody = StatusBody['service'];

interface HeadlineProps {
  readonly service: ServiceBody;
  readonly queue: StatusBody['queue'];
  readonly isLive: boolean;
  /** Time of the server's clock in milliseconds since the epoch. */
  readonly nowMs: number;
}

/** Shows the state of the service, its version and its uptime. */
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

export function DrainNotice({ service, nowMs }: Pick<HeadlineProps, 'service' | 'nowMs'>) {
  if (service.status !== 'draining') return null;
  const { drain_ends_at: endsAt } = service;
  const left = endsAt !== null && ageText(Date.parse(endsAt) - nowMs);
  return html`<div class="notice warn">
    <strong>The service is draining</strong>
    <p>
      New jobs are refused; running jobs finish.${endsAt !== null && ` Jobs still running at ${momentText(endsAt, nowMs)} (in ${left}) will be cut off.`}
    </p>
  </div>`;
}

/** Shortest interruption that is shown. Replacing a worker takes less. */
const quietMs = 1500;

/** Warns that the page may be out of date. */
export function OldNotice({ view, nowMs }: { readonly view: FollowedStatus; readonly nowMs: number }) {
  if (view.kind !== 'old' || nowMs - view.sinceMs < quietMs) return null;
  return html`<div class="notice warn">
    <strong>Connection lost: data is ${ageText(nowMs - view.sinceMs)} old</strong>
    <p>Last update at ${momentText(view.sinceMs, nowMs)}. The page reconnects by itself.</p>
  </div>`;
}

interface BreakerProps {
  readonly breaker: BreakerBody;
  /** Reasons of the health status, which the page already shows. */
  readonly reasons: readonly ReasonBody[];
  /** Time of the server's clock in milliseconds since the epoch. */
  readonly nowMs: number;
}

type CircuitBody = Pick<BreakerBody, 'state' | 'reason' | 'since' | 'until'>;
type ModelCircuit = BreakerBody['models'][number];

/** Shows circuits that stop jobs without degrading the service, and quota windows that are nearly used up. */
export function BreakerNotices({ breaker, reasons, nowMs }: BreakerProps) {
  const { models, windows } = breaker;
  const isSaid = ({ model, state }: ModelCircuit) =>
    state === 'open' && (model === '' || reasons.some(({ name, until }) => name === model && until !== undefined));
  const shown = models.filter((circuit) => circuit.state !== 'closed' && !isSaid(circuit));
  const tight = windows.filter(({ status }) => status !== 'allowed');
  return html`
    ${breaker.state === 'half_open' && html`<${CircuitNotice} what="All jobs are" circuit=${breaker} nowMs=${nowMs} />`}
    ${shown.map(({ model, account, ...circuit }) => html`<${CircuitNotice} key=${`${account} ${model}`} what=${whatOf(model, account)} circuit=${circuit} nowMs=${nowMs} />`)}
    ${tight.length > 0 && html`<${QuotaNotice} windows=${tight} nowMs=${nowMs} />`}
  `;
}

function whatOf(model: string, account: string | undefined): string {
  const jobs = model === '' ? 'Jobs that name no model' : `Jobs of the model ${model}`;
  return `${jobs}${account === undefined ? '' : ` with the account ${account}`} are`;
}

const reasons: Readonly<Record<NonNullable<CircuitBody['reason']>, string>> = {
  quota: 'the quota of the account is used up',
  auth: 'the credential of the model CLI is refused',
};

interface CircuitProps {
  readonly what: string;
  readonly circuit: CircuitBody;
  readonly nowMs: number;
}

function CircuitNotice({ what, circuit, nowMs }: CircuitProps) {
  const { state, reason, since, until } = circuit;
  const next = state === 'half_open' ? ' The next job is a trial: if it succeeds, all others continue.' : '';
  return html`<div class="notice bad" role="status">
    <strong>${what} paused${reason && `: ${reasons[reason]}`}</strong>
    <p>
      The circuit breaker is ${state.replace('_', ' ')}${since && ` since ${momentText(since, nowMs)}`}.${until && ` The next job may start at ${momentText(until, nowMs)}.`}${next}
    </p>
  </div>`;
}

const quotaTexts: ReadonlyMap<string, string> = new Map([
  ['rejected', 'used up'],
  ['warning', 'nearly used up'],
]);

function QuotaNotice({ windows, nowMs }: { readonly windows: BreakerBody['windows']; readonly nowMs: number }) {
  return html`<div class="notice warn" role="status">
    <strong>The quota of the account is used up or nearly used up</strong>
    <ul>
      ${windows.map(({ name, account, status, utilization, resets_at: resetsAt }) => {
        const facts = [
          quotaTexts.get(status) ?? status.replaceAll('_', ' '),
          utilization !== null && `${Math.round(100 * utilization)} % used`,
          resetsAt !== null && `resets at ${momentText(resetsAt, nowMs)}`,
        ];
        const label = [account, name.replaceAll('_', ' ')].filter(Boolean).join(', ');
        return html`<li key=${label}>${label}: ${facts.filter(Boolean).join(', ')}</li>`;
      })}
    </ul>
  </div>`;
}

import { html } from 'htm/preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { StatusBody } from '../../shared/api/status.js';
import { useNow, useParts } from '../base/context.mjs';
import { ageText, countText, momentText, plural } from '../base/format.mjs';
import { useValue } from '../base/observable.mjs';
import type { PageProps } from '../base/router.mjs';
import { ErrorNotice, StatusDot, type Tone } from '../ui/notices.mjs';
import { type Column, Table } from '../ui/tables.mjs';
import { LastHour } from './last-hour.mjs';
import { BreakerNotices, DrainNotice, Headline, OldNotice, Reasons, renewalText } from './notices.mjs';
import { ReadinessCard } from './readiness.mjs';
import { type FollowedStatus, StatusFollower } from './status-follower.mjs';

/** Shows the current state of the service. */
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

/** Shows a status. If it is old, its ages are those of the moment when it was read. */
function Board({ view }: { readonly view: Extract<FollowedStatus, { readonly kind: 'live' | 'old' }> }) {
  const now = useNow();
  const { status, aheadMs } = view;
  const nowMs = (view.kind === 'old' ? view.sinceMs : now) + aheadMs;
  const { checks, service, queue, last_hour: minutes, last_day: steps } = status;
  const { started_at: startedAt } = service;
  const hour = useMemo(
    () => html`<${LastHour} minutes=${minutes} steps=${steps} startedAt=${startedAt} />`,
    [minutes, steps, startedAt],
  );
  const { may_recheck: mayRecheck } = service;
  const readiness = useMemo(
    () => html`<${ReadinessCard} checks=${checks} mayRecheck=${mayRecheck} />`,
    [checks, mayRecheck],
  );
  return html`
    <${Headline} service=${service} queue=${queue} isLive=${view.kind === 'live'} nowMs=${nowMs} />
    <${OldNotice} view=${view} nowMs=${now} />
    <${DrainNotice} service=${service} nowMs=${nowMs} />
    <${Reasons} service=${service} queue=${queue} nowMs=${nowMs} />
    <${BreakerNotices} breaker=${status.breaker} reasons=${service.reasons} nowMs=${nowMs} />
    <div class="board">
      <${Slots} status=${status} nowMs=${nowMs} />
      <${Queue} status=${status} nowMs=${nowMs} />
      ${hour}
      ${readiness}
      <${CliProcesses} status=${status} nowMs=${nowMs} />
      <${Workers} workers=${status.workers} />
    </div>
  `;
}

/** Returns the name of a client; null is a name that the service hides from this user. */
function clientText(client: string | null): string {
  return client ?? 'another client';
}

interface CardProps {
  readonly status: StatusBody;
  /** Time of the server's clock in milliseconds since the epoch. */
  readonly nowMs: number;
}

/** Maximum number of cells. If there are more slots, the last cell counts the remaining free ones. */
const maxCells = 24;

/** Shows a cell for each slot, the longest running job first. */
function Slots({ status, nowMs }: CardProps) {
  const { max, running } = status.slots;
  const free = Math.max(0, max - running.length);
  const freeCells = Math.min(free, Math.max(1, maxCells - running.length));
  const hidden = free - freeCells;
  const { reserved = [] } = status.slots;
  return html`<section class="card" aria-labelledby="now-slots">
    <div class="row between">
      <h2 id="now-slots">Slots</h2>
      <span class="muted figure">${running.length} of ${max} busy</span>
    </div>
    <ul class="slots">
      ${running.map((job) => html`<${BusySlot} key=${job.job} job=${job} nowMs=${nowMs} />`)}
      ${Array.from({ length: freeCells }, (_, index) => html`<li key=${`free ${index}`} class="slot free">free</li>`)}
      ${hidden > 0 && html`<li key="hidden" class="slot free">and ${plural(hidden, 'free one')} more</li>`}
    </ul>
    ${reserved.map((each) => html`<small key=${each.group} class="muted figure">${reservedText(each, nowMs)}</small>`)}
  </section>`;
}

type Reserved = NonNullable<StatusBody['slots']['reserved']>[number];

function reservedText({ group, slots, running, until }: Reserved, nowMs: number): string {
  return `${plural(slots, 'slot')} reserved for ${group} until ${momentText(until, nowMs)}, ${countText(running)} running`;
}

type SlotJob = StatusBody['slots']['running'][number];

function BusySlot({ job, nowMs }: { readonly job: SlotJob; readonly nowMs: number }) {
  const { client, operation, model, started_at: startedAt } = job;
  return html`<li class="slot busy">
    <strong class="figure">${ageText(nowMs - Date.parse(startedAt))}</strong>
    <span class="cut" title=${clientText(client)}>${clientText(client)}</span>
    <span class="cut muted" title=${model ?? undefined}>${operation}${model !== null && ` · ${model}`}</span>
  </li>`;
}

type QueueRow = StatusBody['queue']['clients'][number] & { readonly place: number };

/** Texts for what the oldest job of a client waits for. */
const reasonTexts: Readonly<Record<NonNullable<QueueRow['reason']>, string>> = {
  slot: 'a free slot',
  client: 'its own running jobs',
  cli: 'its model CLI',
  conversation: 'the previous turn',
  account: 'the account of its CLI',
  group: 'running jobs of its group',
};

/** Shows the clients that wait for a slot, the longest wait first, and the number of background jobs. */
function Queue({ status, nowMs }: CardProps) {
  const { max, waiting, clients } = status.queue;
  const { background_jobs: background } = status;
  const columns: readonly Column<QueueRow>[] = [
    { title: 'Client', cell: ({ client }) => clientText(client) },
    { title: 'Waiting', isNumber: true, cell: (row) => row.waiting },
    { title: 'Waits for', cell: ({ reason = 'slot' }) => reasonTexts[reason] },
    { title: 'Oldest wait', isNumber: true, cell: (row) => ageText(nowMs - Date.parse(row.oldest_since)) },
  ];
  const rows = clients.map((client, place) => ({ ...client, place }));
  return html`<section class="card" aria-labelledby="now-queue">
    <div class="row between">
      <h2 id="now-queue">Queue</h2>
      <span class="muted figure">${waiting} of ${max} places taken</span>
    </div>
    <progress class="fill" max=${Math.max(1, max)} value=${waiting} aria-label="Places in the queue that are taken" />
    ${
      rows.length === 0
        ? html`<p class="muted">The queue is empty.</p>`
        : html`<${Table} caption="Waiting, by client" columns=${columns} rows=${rows} keyOf=${(row: QueueRow) => row.place} />`
    }
    <small class="muted figure">Background jobs: ${countText(background.waiting)} of ${countText(background.max)} waiting, ${countText(background.running)} running</small>
  </section>`;
}

const states: readonly [keyof StatusBody['cli_processes'], meaning: string][] = [
  ['busy', 'answering'],
  ['standby', 'ready for any request'],
  ['live', 'ready for their conversation'],
  ['renewed', 'ready for their client'],
  ['tools', 'waiting for tool results'],
  ['stopping', 'ending'],
];

/** Shows the number of processes of the model CLI in each state, and why none is renewed. */
function CliProcesses({ status, nowMs }: CardProps) {
  const { cli_processes: counts, renewals } = status;
  return html`<section class="card" aria-labelledby="now-cli">
    <h2 id="now-cli">CLI processes</h2>
    <dl class="counts">
      ${states.map(
        ([state, meaning]) => html`<div class=${counts[state] === 0 ? 'none' : undefined}>
          <dt>${state}<small class="muted">${meaning}</small></dt>
          <dd class="figure">${counts[state]}</dd>
        </div>`,
      )}
    </dl>
    ${renewals.map((fault) => html`<small key=${`${fault.cli} ${fault.account} ${fault.kind} ${fault.reason}`} class="muted">${renewalText(fault, nowMs)}</small>`)}
  </section>`;
}

type WorkerBody = StatusBody['workers'][number];

const restartTexts = ['', 'restarted once'];
const tones: Readonly<Record<WorkerBody['state'], Tone>> = { ready: 'good', starting: 'warn', stopping: 'warn' };

function Workers({ workers }: { readonly workers: readonly WorkerBody[] }) {
  return html`<section class="card" aria-labelledby="now-workers">
    <h2 id="now-workers">Workers</h2>
    <ul class="workers">
      ${workers.map(
        ({ id, pid, state, restarts }) => html`<li key=${id}>
          <${StatusDot} tone=${tones[state]} label=${`Worker ${id}: ${state}`} />
          <small class="muted figure">${[pid && `pid ${pid}`, restartTexts[restarts] ?? `restarted ${restarts} times`].filter(Boolean).join(' · ')}</small>
        </li>`,
      )}
    </ul>
  </section>`;
}

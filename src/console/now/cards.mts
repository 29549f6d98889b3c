import type { StatusBody } from '../../shared/api/status.js';
import { ageText, plural } from '../base/format.mjs';
import { html } from '../ui/html.mjs';
import { StatusDot, type Tone } from '../ui/notices.mjs';
import { type Column, Table } from '../ui/tables.mjs';

/** Who may not see the clients of others is told that there is one. */
function clientText(client: string | null): string {
  return client ?? 'another client';
}

interface SlotsProps {
  readonly slots: StatusBody['slots'];
  /** By the clock of the server. */
  readonly nowMs: number;
}

/** More than these are told by their number. */
const maxCells = 24;

/** A cell for each slot, the longest running job first. */
export function Slots({ slots, nowMs }: SlotsProps) {
  const { max, running } = slots;
  const free = Math.max(0, max - running.length);
  const freeCells = Math.min(free, Math.max(1, maxCells - running.length));
  const hidden = free - freeCells;
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
  </section>`;
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

interface QueueProps {
  readonly queue: StatusBody['queue'];
  readonly background: StatusBody['background_jobs'];
  /** By the clock of the server. */
  readonly nowMs: number;
}

type QueueRow = StatusBody['queue']['clients'][number] & { readonly place: number };

/** What the oldest job of a client waits for. */
const reasonTexts: Readonly<Record<NonNullable<QueueRow['reason']>, string>> = {
  slot: 'a free slot',
  client: 'its own jobs to end',
  cli: 'its model CLI',
  conversation: 'the turn before it',
  account: 'the account of its CLI',
};

/** Who waits for a slot, the one who has waited longest first, and how many jobs wait behind them all. */
export function Queue({ queue, background, nowMs }: QueueProps) {
  const { max, waiting, clients } = queue;
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
        ? html`<p class="muted">Nobody waits.</p>`
        : html`<${Table} caption="Waiting, by client" columns=${columns} rows=${rows} keyOf=${(row: QueueRow) => row.place} />`
    }
    <small class="muted figure">Background jobs: ${background.waiting} of ${background.max} waiting, ${background.running} running</small>
  </section>`;
}

type CliCounts = StatusBody['cli_processes'];

const states: readonly [keyof CliCounts, meaning: string][] = [
  ['busy', 'answer now'],
  ['standby', 'wait for any request'],
  ['live', 'wait for their conversation'],
  ['stopping', 'are being ended'],
];

/** How many processes of the model CLI there are in each state. */
export function CliProcesses({ counts }: { readonly counts: CliCounts }) {
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
  </section>`;
}

type WorkerBody = StatusBody['workers'][number];

const tones: Readonly<Record<WorkerBody['state'], Tone>> = { ready: 'good', starting: 'warn', stopping: 'warn' };

export function Workers({ workers }: { readonly workers: readonly WorkerBody[] }) {
  return html`<section class="card" aria-labelledby="now-workers">
    <h2 id="now-workers">Workers</h2>
    <ul class="workers">
      ${workers.map(
        ({ id, pid, state, restarts }) => html`<li key=${id}>
          <${StatusDot} tone=${tones[state]} label=${`Worker ${id}: ${state}`} />
          <small class="muted figure">${[pid && `pid ${pid}`, restartText(restarts)].filter(Boolean).join(' · ')}</small>
        </li>`,
      )}
    </ul>
  </section>`;
}

function restartText(restarts: number): string {
  if (restarts === 0) return '';
  return restarts === 1 ? 'restarted once' : `restarted ${restarts} times`;
}

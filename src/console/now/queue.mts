import type { StatusBody } from '../../shared/api/status.js';
import { ageText } from '../times.mjs';
import { html } from '../ui/html.mjs';
import { type Column, Table } from '../ui/table.mjs';
import { clientText } from './client-text.mjs';

interface QueueProps {
  readonly queue: StatusBody['queue'];
  readonly background: StatusBody['background_jobs'];
  /** By the clock of the server. */
  readonly nowMs: number;
}

type QueueRow = StatusBody['queue']['clients'][number] & { readonly place: number };

/** Who waits for a slot, the one who has waited longest first, and how many jobs wait behind them all. */
export function Queue({ queue, background, nowMs }: QueueProps) {
  const { max, waiting, clients } = queue;
  const columns: readonly Column<QueueRow>[] = [
    { title: 'Client', cell: ({ client }) => clientText(client) },
    { title: 'Waiting', isNumber: true, cell: (row) => row.waiting },
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

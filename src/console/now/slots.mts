import type { StatusBody } from '../../shared/api/status.js';
import { plural } from '../format.mjs';
import { ageText } from '../times.mjs';
import { html } from '../ui/html.mjs';
import { clientText } from './client-text.mjs';

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

import type { StatusBody } from '../../shared/api/status.js';
import { html } from '../ui/html.mjs';
import { StatusDot, type Tone } from '../ui/status-dot.mjs';

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

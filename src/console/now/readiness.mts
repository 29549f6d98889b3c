import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { ReadinessBody } from '../../shared/api/health.js';
import type { StatusBody } from '../../shared/api/status.js';
import { useParts } from '../base/context.mjs';
import { ApiError, asError } from '../base/failures.mjs';
import { durationText, momentText } from '../base/format.mjs';
import { Scrubber } from '../ui/column-chart.mjs';
import { ErrorNotice, StatusDot } from '../ui/notices.mjs';

const triggerTexts: Readonly<Record<ReadinessBody['trigger'], string>> = {
  start: 'at the start',
  interval: 'scheduled',
  forced: 'requested',
  failure: 'after a failed job',
};

function wordOf({ status }: ReadinessBody): string {
  return status.replace('_', ' ');
}

const places = 100;

interface ReadinessProps {
  readonly checks: StatusBody['checks'];
  readonly mayRecheck: boolean;
}

/** Shows the last checks of the model CLIs, oldest first. An operator can start another one. */
export function ReadinessCard({ checks, mayRecheck }: ReadinessProps) {
  const [pointed, setPointed] = useState<number | null>(null);
  const shown = checks.at(pointed ?? -1);
  const last = lastOfEach(checks);
  const lines = pointed !== null || last.length < 2 ? [shown] : last;
  const labelOf = (check: ReadinessBody | undefined) => checkLabel(check, pointed === null, last.length > 1);
  const point = (place: number | null) => setPointed(place === null ? null : Math.max(0, place - empty));
  const empty = Math.max(0, places - checks.length);
  return html`<section class="card" aria-labelledby="now-readiness">
    <div class="row between">
      <h2 id="now-readiness">Readiness of the model CLI</h2>
      ${mayRecheck && html`<${Recheck} />`}
    </div>
    <div class="strip">
      ${Array.from({ length: empty }, () => html`<span class="check none" aria-hidden="true" />`)}
      ${checks.map(
        ({ status }, index) =>
          html`<span class="check ${status} ${index === pointed ? 'pointed' : ''}" aria-hidden="true" />`,
      )}
      <${Scrubber}
        label="Readiness checks, oldest first"
        count=${places}
        index=${pointed === null ? null : pointed + empty}
        text=${shown === undefined ? 'no check yet' : spokenText(shown)}
        onPoint=${point}
      />
    </div>
    ${lines.map((check) => html`<${CheckLine} key=${check && nameOf(check)} check=${check} label=${labelOf(check)} />`)}
  </section>`;
}

function spokenText(check: ReadinessBody): string {
  const { checked_at: at, trigger, error } = check;
  return [at !== null && momentText(at, Date.parse(at)), wordOf(check), triggerTexts[trigger], error]
    .filter(Boolean)
    .join(', ');
}

/** Returns the name of the CLI, with its account if that has a name. */
function nameOf({ cli, adapter, account }: ReadinessBody): string {
  return account === undefined ? (cli ?? adapter) : `${cli}@${account}`;
}

/** Returns the last check of each CLI and account, by name. */
export function lastOfEach(checks: StatusBody['checks']): ReadinessBody[] {
  const last = new Map(checks.map((check) => [nameOf(check), check]));
  return [...last].toSorted(([a], [b]) => a.localeCompare(b)).map(([, check]) => check);
}

function checkLabel(check: ReadinessBody | undefined, isLast: boolean, areSeveral: boolean): string {
  if (check === undefined) return '';
  const word = wordOf(check);
  if (areSeveral) return `${nameOf(check)}: ${word}`;
  return isLast ? `Last check: ${word}` : word;
}

interface CheckLineProps {
  readonly check: ReadinessBody | undefined;
  readonly label: string;
}

/** Shows the selected check, else the last one. */
function CheckLine({ check, label }: CheckLineProps) {
  const { clock } = useParts();
  if (check === undefined || check.checked_at === null) return html`<p class="muted">No check has ended yet.</p>`;
  const { status, checked_at: at, duration_ms: ms, trigger, version, error } = check;
  return html`<div class="check-line">
    <p>
      <${StatusDot} tone=${status === 'ready' ? 'good' : 'bad'} label=${label} />
      <span class="muted">
        ${momentText(at, clock.now())} · ${triggerTexts[trigger]} · took ${durationText(ms)} · ${[nameOf(check), version].filter(Boolean).join(' ')}
      </span>
    </p>
    ${error !== undefined && html`<p class="fault">${error}</p>`}
  </div>`;
}

type RecheckState = 'idle' | 'checking' | 'checked' | { readonly failure: Error };

/** Button with which an operator starts a check. */
function Recheck() {
  const { api } = useParts();
  const [state, setState] = useState<RecheckState>('idle');
  const check = () => {
    setState('checking');
    api.json('/health/recheck', { method: 'POST', asksForKey: false }).then(
      () => setState('checked'),
      (thrown: unknown) => setState(afterFailure(asError(thrown))),
    );
  };
  return html`<div class="row">
      <span class="muted" role="status">${typeof state === 'string' && recheckTexts[state]}</span>
      <button type="button" class="button small" disabled=${state === 'checking'} onClick=${check}>Check now</button>
    </div>
    ${typeof state === 'object' && html`<div class="whole"><${ErrorNotice} error=${state.failure} /></div>`}`;
}

const recheckTexts: Readonly<Record<Extract<RecheckState, string>, string>> = {
  idle: '',
  checking: 'Checking …',
  checked: 'Checked',
};

/**
 * Treats a 503 without an error body as a finished check: it is the health of the service, and the strip shows the
 * result.
 */
function afterFailure(error: Error): RecheckState {
  return error instanceof ApiError && error.status === 503 && error.body === null ? 'checked' : { failure: error };
}

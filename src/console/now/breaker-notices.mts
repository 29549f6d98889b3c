import type { BreakerBody, ReasonBody } from '../../shared/api/health.js';
import { momentText } from '../times.mjs';
import { html } from '../ui/html.mjs';

interface BreakerProps {
  readonly breaker: BreakerBody;
  /** What the page says already. */
  readonly reasons: readonly ReasonBody[];
  /** By the clock of the server. */
  readonly nowMs: number;
}

type CircuitBody = Pick<BreakerBody, 'state' | 'reason' | 'since' | 'until'>;
type ModelCircuit = BreakerBody['models'][number];

/** What holds jobs back and does not degrade the service, and which windows of the quota are near their end. */
export function BreakerNotices({ breaker, reasons, nowMs }: BreakerProps) {
  const { models, windows } = breaker;
  const isSaid = ({ model, state }: ModelCircuit) =>
    state === 'open' && (model === '' || reasons.some(({ name, until }) => name === model && until !== undefined));
  const held = models.filter((circuit) => circuit.state !== 'closed' && !isSaid(circuit));
  const tight = windows.filter(({ status }) => status !== 'allowed');
  return html`
    ${breaker.state === 'half_open' && html`<${Held} what="All jobs are" circuit=${breaker} nowMs=${nowMs} />`}
    ${held.map(({ model, ...circuit }) => html`<${Held} key=${model} what=${whatOf(model)} circuit=${circuit} nowMs=${nowMs} />`)}
    ${tight.length > 0 && html`<${QuotaNotice} windows=${tight} nowMs=${nowMs} />`}
  `;
}

function whatOf(model: string): string {
  return model === '' ? 'Jobs that name no model are' : `Jobs of the model ${model} are`;
}

const reasons: Readonly<Record<NonNullable<CircuitBody['reason']>, string>> = {
  quota: 'the quota of the account is used up',
  auth: 'the credential of the model CLI is refused',
};

interface HeldProps {
  readonly what: string;
  readonly circuit: CircuitBody;
  readonly nowMs: number;
}

function Held({ what, circuit, nowMs }: HeldProps) {
  const { state, reason, since, until } = circuit;
  const next = state === 'half_open' ? ' The next job is let through alone, and decides.' : '';
  return html`<div class="notice bad" role="status">
    <strong>${what} held back${reason && `: ${reasons[reason]}`}</strong>
    <p>
      The breaker is ${state.replace('_', ' ')}${since && `, since ${momentText(since, nowMs)}`}.${until && ` The next job is let through at ${momentText(until, nowMs)}.`}${next}
    </p>
  </div>`;
}

function QuotaNotice({ windows, nowMs }: { readonly windows: BreakerBody['windows']; readonly nowMs: number }) {
  return html`<div class="notice warn" role="status">
    <strong>The quota of the account is nearly used up, or is</strong>
    <ul>
      ${windows.map(({ name, status, utilization, resets_at: resetsAt }) => {
        const facts = [
          status,
          utilization !== null && `${Math.round(100 * utilization)} % used`,
          resetsAt !== null && `starts anew at ${momentText(resetsAt, nowMs)}`,
        ];
        return html`<li key=${name}>${name.replaceAll('_', ' ')}: ${facts.filter(Boolean).join(', ')}</li>`;
      })}
    </ul>
  </div>`;
}

import type { BreakerBody } from '../../shared/api/health.js';
import { formatDuration } from '../../shared/text/format.js';
import { escaped, type Paint } from '../../shared/text/paint.js';

type ShownCircuit = Pick<BreakerBody, 'state' | 'reason' | 'until'>;
type ShownWindow = BreakerBody['windows'][number];

/** Whether the account of the model CLI holds jobs back, and how much of its quota is used; empty where there is nothing to say. */
export function accountLine(breaker: BreakerBody, now: number, paint: Paint): string {
  const models = breaker.models.map((circuit) => {
    const jobs = circuit.model === '' ? 'jobs without a model' : circuit.model;
    return `${escaped(jobs)}: ${circuitText(circuit, now, paint)}`;
  });
  const windows = breaker.windows.map((window) => windowText(window, now, paint));
  return [circuitText(breaker, now, paint), ...models, ...windows].filter((text) => text !== '').join('   ');
}

function circuitText({ state, reason = 'quota', until }: ShownCircuit, now: number, paint: Paint): string {
  if (state === 'closed') return '';
  if (state === 'half_open') return paint.yellow(`${reason}: the next job decides`);
  return paint.red(`jobs held back${until === undefined ? '' : ` for ${untilText(until, now)}`}: ${reason}`);
}

function windowText({ name, status, utilization, resets_at: reset }: ShownWindow, now: number, paint: Paint): string {
  const style = { allowed: (text: string) => text, warning: paint.yellow, rejected: paint.red }[status];
  const used = utilization === null ? status : `${Math.round(utilization * 100)} %`;
  return `${name} ${style(used)}${reset === null ? '' : paint.dim(` (reset in ${untilText(reset, now)})`)}`;
}

function untilText(time: string, now: number): string {
  return formatDuration(Math.max(0, Date.parse(time) - now));
}

import type { BreakerBody, HealthBody, ReadinessBody } from '../../shared/api/health.js';
import { formatCount, formatDuration } from '../../shared/text/format.js';
import { escaped, type Paint } from '../../shared/text/paint.js';

/** Returns the readiness of every model CLI of the service. */
export function clisOf({ readiness }: HealthBody): readonly ReadinessBody[] {
  return readiness.model_clis ?? [readiness.model_cli];
}

export function readinessLine(readiness: ReadinessBody, now: number, paint: Paint): string {
  const { cli, adapter, version } = readiness;
  const words = [cli ?? adapter, cli === undefined || cli === adapter ? '' : adapter, version ?? ''];
  const name = escaped(words.filter((word) => word !== '').join(' '));
  if (readiness.checked_at === null) return `${name}: ${paint.yellow('not checked yet')}`;
  const verdict = readiness.status === 'ready' ? paint.green('ready') : paint.red('not ready');
  const age = formatDuration(Math.max(0, now - Date.parse(readiness.checked_at)));
  const error = readiness.error === undefined ? '' : `: ${escaped(readiness.error)}`;
  return `${name}: ${verdict}${error} ${paint.dim(`(checked ${age} ago in ${formatDuration(readiness.duration_ms)}, trigger: ${readiness.trigger})`)}`;
}

const maxMarks = 40;

/** Returns one mark for each of the last checks, the newest at the right. */
export function readinessStrip(checks: readonly ReadinessBody[], paint: Paint): string {
  if (checks.length === 0) return '';
  const shown = checks.slice(-maxMarks);
  const marks = shown.map(({ status }) => (status === 'ready' ? paint.green('▪') : paint.red('✗')));
  const ready = checks.filter(({ status }) => status === 'ready').length;
  return `${marks.join('')}  ${paint.dim(`${ready} of ${formatCount(checks.length, 'check')} ready`)}`;
}

/**
 * Formats the circuits of the account that block jobs, and the used part of its quota. Empty if neither is known.
 */
export function accountLine(breaker: BreakerBody, now: number, paint: Paint): string {
  const models = breaker.models.map((circuit) => {
    const jobs = circuit.model === '' ? 'jobs without a model' : circuit.model;
    return `${escaped(jobs)}: ${circuitText(circuit, now, paint)}`;
  });
  const windows = breaker.windows.map((window) => windowText(window, now, paint));
  return [circuitText(breaker, now, paint), ...models, ...windows].filter((text) => text !== '').join('   ');
}

function circuitText(
  { state, reason = 'quota', until }: Pick<BreakerBody, 'state' | 'reason' | 'until'>,
  now: number,
  paint: Paint,
): string {
  if (state === 'closed') return '';
  if (state === 'half_open') return paint.yellow(`${reason}: the next job decides`);
  return paint.red(`jobs blocked${until === undefined ? '' : ` for ${untilText(until, now)}`}: ${reason}`);
}

function windowText(
  { name, status, utilization, resets_at: reset }: BreakerBody['windows'][number],
  now: number,
  paint: Paint,
): string {
  const style = { allowed: (text: string) => text, warning: paint.yellow, rejected: paint.red }[status];
  const used = utilization === null ? status : `${Math.round(utilization * 100)} %`;
  return `${name} ${style(used)}${reset === null ? '' : paint.dim(` (reset in ${untilText(reset, now)})`)}`;
}

export function untilText(time: string, now: number): string {
  return formatDuration(Math.max(0, Date.parse(time) - now));
}

import type { HealthBody, ReadinessBody } from '../../shared/api/health.js';
import type { VersionBody } from '../../shared/api/version.js';
import { type Paint, plain } from './paint.js';
import type { Change, Totals } from './totals.js';
import { counted, duration, figure, labelled } from './words.js';

/** All that is known of a service at one moment. */
export interface Snapshot {
  readonly url: string;
  /** Milliseconds since the epoch. */
  readonly takenAt: number;
  readonly version: VersionBody;
  readonly health: HealthBody;
  /** Oldest first. */
  readonly checks: readonly ReadinessBody[];
  readonly totals: Totals;
  /** Against the snapshot before; null for the first. */
  readonly change: Change | null;
}

type Observability = HealthBody['observability'];

/** The view of `status`, a line for each thing. */
export function renderStatus(snapshot: Snapshot, paint: Paint): string[] {
  const { health, version, takenAt } = snapshot;
  const { model_runtime: runtime, cli_processes: processes, workers } = health.observability;
  const slots = share(runtime.active_requests, runtime.max_concurrent);
  const queue = share(runtime.queued_requests, runtime.max_queue);
  const width = Math.max(slots.length, queue.length);
  const rows: [string, string][] = [
    ['model CLI', readinessLine(health.readiness.model_cli, takenAt, paint)],
    ['checks', readinessStrip(snapshot.checks, paint)],
    ['slots', `${slots.padEnd(width)}  ${gauge(runtime.active_requests, runtime.max_concurrent, paint)}`],
    ['ages', agesLine(runtime.active_ages_ms ?? [])],
    ['queue', `${queue.padEnd(width)}  ${gauge(runtime.queued_requests, runtime.max_queue, paint)}`],
    ['processes', processes === undefined ? '' : processLine(processes, paint)],
    ['workers', workers.map((worker) => workerWord(worker, paint)).join('   ')],
    ['in all', totalsLine(snapshot.totals, paint)],
    ['now', snapshot.change === null ? '' : changeLine(snapshot.change, paint)],
  ];
  return [
    `${paint.bold(`prompt-relay ${plain(version.version)}`)}  ${statusWord(health.status, paint)}  ${paint.dim(
      `${snapshot.url}, up ${duration(health.observability.uptime_seconds * 1000)}`,
    )}`,
    ...labelled(
      rows.filter(([, text]) => text !== ''),
      paint.dim,
    ),
  ];
}

function statusWord(status: HealthBody['status'], paint: Paint): string {
  return { ok: paint.green, degraded: paint.red, draining: paint.yellow }[status](status);
}

export function readinessLine(found: ReadinessBody, now: number, paint: Paint): string {
  const name = plain([found.adapter, found.version ?? ''].join(' ').trimEnd());
  if (found.checked_at === null) return `${name}: ${paint.yellow('not checked yet')}`;
  const verdict = found.status === 'ready' ? paint.green('ready') : paint.red('not ready');
  const age = duration(Math.max(0, now - Date.parse(found.checked_at)));
  const error = found.error === undefined ? '' : `: ${plain(found.error)}`;
  return `${name}: ${verdict}${error} ${paint.dim(`(checked ${age} ago in ${duration(found.duration_ms)}, ${found.trigger})`)}`;
}

const maxAges = 8;

/** How long each job has had its slot, longest first. */
function agesLine(ages: readonly number[]): string {
  const rest = ages.length > maxAges ? ` and ${ages.length - maxAges} more` : '';
  return ages.slice(0, maxAges).map(duration).join('  ') + rest;
}

const maxStrip = 40;

/** The last checks, the newest at the right. */
export function readinessStrip(checks: readonly ReadinessBody[], paint: Paint): string {
  if (checks.length === 0) return '';
  const shown = checks.slice(-maxStrip);
  const marks = shown.map(({ status }) => (status === 'ready' ? paint.green('▪') : paint.red('✗')));
  const ready = checks.filter(({ status }) => status === 'ready').length;
  return `${marks.join('')}  ${paint.dim(`${ready} of ${counted(checks.length, 'check')} ready`)}`;
}

function share(taken: number, whole: number): string {
  return `${figure(taken)} of ${figure(whole)}`;
}

const barCells = 20;

/** Cells for what is taken, at least one for anything; a small whole is shown one to one. */
export function gauge(taken: number, whole: number, paint: Paint): string {
  const cells = whole > 0 && whole <= barCells ? whole : barCells;
  const full = whole === 0 ? 0 : Math.min(1, taken / whole);
  const filled = taken === 0 ? 0 : Math.max(1, Math.floor(full * cells));
  const colour = full >= 1 ? paint.red : full >= 0.75 ? paint.yellow : paint.green;
  return colour('█'.repeat(filled)) + paint.dim('░'.repeat(cells - filled));
}

function processLine(counts: Observability['cli_processes'], paint: Paint): string {
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
  if (total === 0) return paint.dim('none');
  return `${counts.busy} busy, ${counts.live} held for conversations, ${counts.standby} standing by, ${counts.stopping} stopping`;
}

function workerWord({ pid, state, restarts }: Observability['workers'][number], paint: Paint): string {
  const mark = state === 'ready' ? paint.green('●') : paint.yellow('○');
  const more = [state === 'ready' ? '' : state, restarts === 0 ? '' : counted(restarts, 'restart')];
  const told = more.filter((text) => text !== '').join(', ');
  return `${mark} ${pid ?? '–'}${told === '' ? '' : ` ${paint.yellow(told)}`}`;
}

function totalsLine(totals: Totals, paint: Paint): string {
  return [
    counted(totals.requests, 'request'),
    counted(totals.jobs, 'job'),
    alarming(totals.failed, `${figure(totals.failed)} failed`, paint),
    `${figure(totals.cancelled)} cancelled`,
    alarming(totals.refused, `${figure(totals.refused)} refused`, paint),
    `${counted(totals.tokensOut, 'token')} out`,
  ].join(paint.dim(' · '));
}

function changeLine(change: Change, paint: Paint): string {
  const rate = (count: number) => `${figure(count / change.seconds)}/s`;
  return [
    `${rate(change.requests)} requests`,
    `${rate(change.jobs)} jobs`,
    alarming(change.failed, `${rate(change.failed)} failed`, paint),
    alarming(change.refused, `${rate(change.refused)} refused`, paint),
    `${rate(change.tokensOut)} tokens out`,
    ...(change.firsts === 0 ? [] : [`first text after ${duration((change.firstSeconds / change.firsts) * 1000)}`]),
  ].join(paint.dim(' · '));
}

function alarming(count: number, text: string, paint: Paint): string {
  return count > 0 ? paint.red(text) : text;
}

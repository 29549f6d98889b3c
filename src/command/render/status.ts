import type {
  BreakerBody,
  FileBody,
  HealthBody,
  ReadinessBody,
  ReasonBody,
  RenewalFaultBody,
} from '../../shared/api/health.js';
import { formatCount, formatDuration, formatNumber, loginLabel, shellWord, wrapped } from '../../shared/text/format.js';
import { escaped, type Paint, plain } from '../../shared/text/paint.js';
import type { ServiceSnapshot, Totals, TotalsChange } from '../base/snapshot.js';
import { wrappedRows } from './columns.js';

type Observability = HealthBody['observability'];
type Runtime = Observability['model_runtime'];

/** Formats the output of `status`. Lines are at most `columns` wide if they can be wrapped between words. */
export function renderStatus(snapshot: ServiceSnapshot, paint: Paint, columns = Number.POSITIVE_INFINITY): string[] {
  const { health, version, takenAt } = snapshot;
  const { model_runtime: runtime, cli_processes: processes, renewals = [], workers } = health.observability;
  const slots = ratio(runtime.active_requests, runtime.max_concurrent);
  const queue = ratio(runtime.queued_requests, runtime.max_queue);
  const width = Math.max(slots.length, queue.length);
  const rows: [string, string][] = [
    ['drain', health.drain_ends_at === undefined ? '' : drainText(health.drain_ends_at, takenAt, paint)],
    ...(health.reasons ?? []).map((reason): [string, string] => ['why', reasonLine(reason, takenAt, paint)]),
    ...clisOf(health).map((cli): [string, string] => ['model CLI', readinessLine(cli, takenAt, paint)]),
    ['command', snapshot.command === null ? '' : escaped(snapshot.command.map(shellWord).join(' '))],
    ['account', runtime.breaker === undefined ? '' : accountLine(runtime.breaker, takenAt, paint)],
    ['checks', readinessStrip(snapshot.checks, paint)],
    ['slots', `${slots.padEnd(width)}  ${gauge(runtime.active_requests, runtime.max_concurrent, paint)}`],
    ['reserved', snapshot.reserved.map(reservedText).join('   ')],
    ['job ages', agesLine(runtime.active_ages_ms ?? [])],
    [
      'queue',
      `${queue.padEnd(width)}  ${gauge(runtime.queued_requests, runtime.max_queue, paint)}${fullText(runtime, takenAt, paint)}`,
    ],
    ['refused', refusedText(runtime, paint)],
    ['processes', processes === undefined ? '' : processLine(processes, paint)],
    ['files', (health.files ?? []).map((file) => fileText(file, takenAt, paint)).join('   ')],
    ...renewals.map((fault): [string, string] => ['renewals', renewalLine(fault, takenAt, paint)]),
    ['workers', workers.map((worker) => workerLabel(worker, paint)).join('   ')],
    ['total', snapshot.totals === null ? '' : totalsLine(snapshot.totals, paint)],
    ['now', snapshot.change === null ? '' : ratesLine(snapshot.change, paint)],
  ];
  const shown = rows.filter(([, text]) => text !== '');
  const place = `${snapshot.url}, up ${formatDuration(health.observability.uptime_seconds * 1000)}`;
  const name = paint.bold(`prompt-relay ${escaped(version.version)}`);
  const head = `${name}  ${statusLabel(health.status, paint)}  ${paint.dim(place)}`;
  return [...wrapped(head, columns), ...wrappedRows(shown, columns, paint.dim)];
}

/** Formats the drain deadline. `ends` is in the past while the service cancels the remaining jobs. */
function drainText(ends: string, now: number, paint: Paint): string {
  const at = `until ${ends.slice(0, 19).replace('T', ' ')} UTC at the latest`;
  return paint.yellow(`${at}, in ${untilText(ends, now)}: jobs finish, new ones are refused`);
}

/** Formats slots that are reserved for a group. */
function reservedText({ group, slots, running, until }: ServiceSnapshot['reserved'][number]): string {
  const time = `until ${until.slice(0, 16).replace('T', ' ')} UTC`;
  return `${formatCount(slots, 'slot')} for ${escaped(group)} ${time}, ${formatNumber(running)} running`;
}

function statusLabel(status: HealthBody['status'], paint: Paint): string {
  return { ok: paint.green, degraded: paint.red, draining: paint.yellow }[status](status);
}

/**
 * Formats a reason of the health status. The message may contain output of a program, so control characters are
 * escaped.
 */
function reasonLine({ message, until }: ReasonBody, now: number, paint: Paint): string {
  const next = until === undefined ? '' : `; no job is started for ${untilText(until, now)}`;
  return paint.red(`${escaped(message)}${next}`);
}

/** Formats the faults of a file that the service reads again, and the age of the version in use. */
function fileText({ name, modified_at: at, faults }: FileBody, now: number, paint: Paint): string {
  const verdict = faults === 0 ? paint.green('no faults') : paint.red(formatCount(faults, 'fault'));
  const age = at === null ? '' : paint.dim(` (changed ${formatDuration(Math.max(0, now - Date.parse(at)))} ago)`);
  return `${name.replaceAll('_', ' ')}: ${verdict}${age}`;
}

/** Formats why renewals or rewindings fail, and when the last pause ends. */
function renewalLine({ cli, account, message, until }: RenewalFaultBody, now: number, paint: Paint): string {
  const name = loginLabel(cli, account);
  const next = until === null ? '' : `; the last pause ends in ${untilText(until, now)}`;
  return paint.yellow(`${escaped(name)}: ${escaped(message)}${next}`);
}

function fullText({ queue_full_since: since = null }: Runtime, now: number, paint: Paint): string {
  if (since === null) return '';
  return paint.red(`  full for ${formatDuration(Math.max(0, now - Date.parse(since)))}`);
}

function refusedText({ refused_last_5_minutes: count = 0 }: Runtime, paint: Paint): string {
  return count === 0 ? '' : paint.red(`${formatNumber(count)} in the last 5 minutes`);
}

/** Formats an error. Any server may have sent the text, so control characters are removed. */
export function failureLines(message: string, paint: Paint): string[] {
  return plain(message).split('\n').map(paint.red);
}

const maxAges = 8;

/** Formats how long each job has had its slot, longest first. */
function agesLine(ages: readonly number[]): string {
  const moreAges = ages.length > maxAges ? ` and ${ages.length - maxAges} more` : '';
  return ages.slice(0, maxAges).map(formatDuration).join('  ') + moreAges;
}

function ratio(used: number, limit: number): string {
  return `${formatNumber(used)} of ${formatNumber(limit)}`;
}

const maxCells = 20;

/** Draws a bar with one cell for each unit, or with 20 cells for a larger limit. Any use fills at least one cell. */
export function gauge(used: number, limit: number, paint: Paint): string {
  const cells = limit > 0 && limit <= maxCells ? limit : maxCells;
  const share = limit === 0 ? 0 : Math.min(1, used / limit);
  const filled = used === 0 ? 0 : Math.max(1, Math.floor(share * cells));
  const colour = share >= 1 ? paint.red : share >= 0.75 ? paint.yellow : paint.green;
  return colour('█'.repeat(filled)) + paint.dim('░'.repeat(cells - filled));
}

function processLine(counts: Observability['cli_processes'], paint: Paint): string {
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
  if (total === 0) return paint.dim('none');
  const { busy, live, renewed, tools, standby, stopping } = counts;
  const waiting = tools === 0 ? '' : `${tools} waiting for tools, `;
  const owned = renewed === 0 ? '' : `${renewed} for their clients, `;
  return `${busy} busy, ${live} reserved for conversations, ${owned}${waiting}${standby} on standby, ${stopping} stopping`;
}

function workerLabel({ pid, state, restarts }: Observability['workers'][number], paint: Paint): string {
  const mark = state === 'ready' ? paint.green('●') : paint.yellow('○');
  const notes = [state === 'ready' ? '' : state, restarts === 0 ? '' : formatCount(restarts, 'restart')];
  const note = notes.filter((text) => text !== '').join(', ');
  return `${mark} ${pid ?? '–'}${note === '' ? '' : ` ${paint.yellow(note)}`}`;
}

function totalsLine(totals: Totals, paint: Paint): string {
  const { requests, jobs, failed, cancelled, refused, tokensOut } = totals;
  return [
    formatCount(requests, 'request'),
    formatCount(jobs, 'job'),
    redIfAny(failed, `${formatNumber(failed)} failed`, paint),
    ...(cancelled === undefined ? [] : [`${formatNumber(cancelled)} cancelled`]),
    redIfAny(refused, `${formatNumber(refused)} refused`, paint),
    ...(tokensOut === undefined ? [] : [formatCount(tokensOut, 'output token')]),
  ].join(paint.dim(' · '));
}

function ratesLine(change: TotalsChange, paint: Paint): string {
  const rate = (count: number) => `${formatNumber(count / change.seconds)}/s`;
  return [
    `${rate(change.requests)} requests`,
    `${rate(change.jobs)} jobs`,
    redIfAny(change.failed, `${rate(change.failed)} failed`, paint),
    redIfAny(change.refused, `${rate(change.refused)} refused`, paint),
    `${rate(change.tokensOut)} output tokens`,
    ...(change.firsts === 0
      ? []
      : [`first text after ${formatDuration((change.firstSeconds / change.firsts) * 1000)}`]),
  ].join(paint.dim(' · '));
}

function redIfAny(count: number, text: string, paint: Paint): string {
  return count > 0 ? paint.red(text) : text;
}

/** Returns the readiness of every model CLI of the service. */
export function clisOf({ readiness }: HealthBody): readonly ReadinessBody[] {
  return readiness.model_clis ?? [readiness.model_cli];
}

export function readinessLine(readiness: ReadinessBody, now: number, paint: Paint): string {
  const { cli, account, adapter, version } = readiness;
  const label = loginLabel(cli ?? adapter, account);
  const words = [label, cli === undefined || cli === adapter ? '' : adapter, version ?? ''];
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
    return `${accountPrefix(circuit)}${escaped(jobs)}: ${circuitText(circuit, now, paint)}`;
  });
  const windows = breaker.windows.map((window) => windowText(window, now, paint));
  return [circuitText(breaker, now, paint), ...models, ...windows].filter((text) => text !== '').join('   ');
}

function accountPrefix({ account }: { readonly account?: string | undefined }): string {
  return account === undefined ? '' : `${escaped(account)} `;
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
  { name, account, status, utilization, resets_at: reset }: BreakerBody['windows'][number],
  now: number,
  paint: Paint,
): string {
  const style = { allowed: (text: string) => text, warning: paint.yellow, rejected: paint.red }[status];
  const used = utilization === null ? status : `${Math.round(utilization * 100)} %`;
  return `${accountPrefix({ account })}${name} ${style(used)}${reset === null ? '' : paint.dim(` (reset in ${untilText(reset, now)})`)}`;
}

function untilText(time: string, now: number): string {
  return formatDuration(Math.max(0, Date.parse(time) - now));
}

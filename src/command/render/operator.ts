import type { PurgeReport, StoreBackup, StoreReport } from '../../shared/api/store.js';
import type { ApiKey } from '../../shared/config/api-keys.js';
import { alignColumns, formatCount, formatDuration, formatNumber, labelledRows } from '../../shared/text/format.js';
import { escaped, type Paint } from '../../shared/text/paint.js';

export function renderBackup({ path, bytes, duration_ms: ms }: StoreBackup): string[] {
  return [`${escaped(path)}: ${kilobytes(bytes)} in ${formatDuration(ms)}`];
}

/** The output of `store verify`. */
export function renderVerdict(report: StoreReport, paint: Paint): string[] {
  const { faults, path, version, bytes, rows, expired, copies } = report;
  const isWell = faults.length === 0;
  const place = path === null ? report.kind : escaped(path);
  const lines: [string, string][] = [
    ['store', version === null ? place : `${place}, version ${version}, ${kilobytes(bytes)}`],
    ['verdict', isWell ? paint.green('no faults') : paint.red(formatCount(faults.length, 'fault'))],
    ...faults.map((fault): [string, string] => ['fault', paint.red(escaped(fault))]),
    ['rows', countsLine(rows)],
    ['expired', countsLine(expired)],
    ['copies', copies.map(escaped).join(', ')],
  ];
  return labelledRows(
    lines.filter(([, text]) => text !== ''),
    paint.dim,
  );
}

export function renderPurge({ client, removed, copies }: PurgeReport, paint: Paint): string[] {
  const gone = countsLine(removed);
  const left =
    copies.length === 0 ? [] : [`may still be in ${copies.map(escaped).join(', ')}: remove these files yourself`];
  return [`${escaped(client)}: removed ${gone === '' ? 'nothing' : gone}`, ...left.map(paint.yellow)];
}

function countsLine(counts: Readonly<Record<string, number>>): string {
  const some = Object.entries(counts).filter(([, count]) => count > 0);
  return some.map(([what, count]) => `${formatNumber(count)} ${escaped(what)}`).join(', ');
}

function kilobytes(bytes: number): string {
  return `${formatNumber(Math.ceil(bytes / 1024))} kB`;
}

/** As JSON, without digests. */
export function keyJson(key: ApiKey) {
  return {
    name: key.name,
    scopes: key.scopes,
    rate: key.rate && { requests: key.rate.maxRequests, seconds: key.rate.windowMs / 1000 },
    concurrent: key.maxConcurrent,
    queue: key.maxQueued,
    weight: key.weight,
    models: key.models,
    tokens_per_day: key.tokensPerDay,
    cost_per_day: key.costPerDay,
    subclients: key.hasSubclients,
    expires: key.expiresAt === null ? null : dayOf(key.expiresAt),
    previous_expires: key.previous && dayOf(key.previous.expiresAt),
  };
}

/** One line for each key, its name first, without digests. */
export function renderKeys(keys: readonly ApiKey[], now: number, paint: Paint): string[] {
  const rows = keys.map((key) => [key.name, key.scopes.join('+'), limitsOf(key).join(' ')]);
  return alignColumns(rows).map((line, index) => {
    const expiresAt = keys[index]?.expiresAt ?? null;
    return expiresAt !== null && expiresAt <= now ? `${line} ${paint.red('expired')}` : line;
  });
}

/** As the keys file writes them. */
function limitsOf({
  rate,
  maxConcurrent,
  maxQueued,
  weight,
  models,
  tokensPerDay,
  costPerDay,
  hasSubclients,
  expiresAt,
  previous,
}: ApiKey): string[] {
  return [
    ...(rate === null ? [] : [`rate=${rate.maxRequests}/${rate.windowMs / 1000}`]),
    ...(maxConcurrent === null ? [] : [`concurrent=${maxConcurrent}`]),
    ...(maxQueued === null ? [] : [`queue=${maxQueued}`]),
    ...(weight === null ? [] : [`weight=${weight}`]),
    ...(models === null ? [] : [`models=${models.join('+')}`]),
    ...(tokensPerDay === null ? [] : [`tokens=${tokensPerDay}/day`]),
    ...(costPerDay === null ? [] : [`cost=${costPerDay}/day`]),
    ...(hasSubclients ? ['subclients'] : []),
    ...(expiresAt === null ? [] : [`expires=${dayOf(expiresAt)}`]),
    ...(previous === null ? [] : [`previous=…/${dayOf(previous.expiresAt)}`]),
  ];
}

function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

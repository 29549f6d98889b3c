import type { PurgeReport, StoreBackup, StoreReport } from '../../shared/api/store.js';
import { formatCount, formatDuration, formatNumber, labelledRows } from '../../shared/text/format.js';
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

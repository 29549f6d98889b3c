import { type UsageFigure, usageFigureNames, usageFigures } from '../../shared/tables/usage-figures.js';
import { figureIn, type UsageGroup, type UsageRow } from './report-form.js';

/** Returns the jobs of a row by their end. */
export function jobCounts({ jobs }: Pick<UsageRow, 'jobs'>) {
  const all = Object.values(jobs).reduce((sum, count) => sum + count, 0);
  const cancelled = jobs.cancelled ?? 0;
  return { all, failed: all - (jobs.ok ?? 0) - cancelled, cancelled };
}

/** Writes a report about usage as CSV, with the names of the columns in the first line. */
export function usageCsv(rows: readonly UsageRow[], groups: readonly UsageGroup[]): string {
  const names = groups.flatMap((group) => (group === 'client' ? (['client', 'kind'] as const) : [group]));
  const textOf = (row: UsageRow, name: (typeof names)[number]) => row[name] ?? (name === 'model' ? noModel : '');
  const lines = rows.map((row) => [...names.map((name) => textCell(textOf(row, name))), ...figuresOf(row)]);
  return [[...names, ...figureNames], ...lines].map((cells) => `${cells.join(',')}\n`).join('');
}

/** Model of refused jobs, and of jobs without an answer. An empty cell would look like an error of the export. */
const noModel = '(none)';

const figureNames = ['jobs', 'failed', 'cancelled', ...usageFigureNames.map(columnOf)];

function columnOf(name: UsageFigure): string {
  const { group, field } = usageFigures[name];
  return group === null ? field : `${field}_${group}`;
}

function figuresOf(row: UsageRow): (number | string)[] {
  const { all, failed, cancelled } = jobCounts(row);
  const figures = usageFigureNames.map((name) => {
    const amount = figureIn(row, name);
    if (amount === null) return '';
    return usageFigures[name].unit === 'usd' ? amount.toFixed(6) : amount; // 1e-7 would be a text for some programs
  });
  return [all, failed, cancelled, ...figures];
}

/**
 * Quotes a text. A spreadsheet would run a text as a formula that begins with one of these characters, also in full
 * width or after blanks.
 */
export function textCell(text: string): string {
  const plain = /^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
}

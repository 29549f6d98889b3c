import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { features } from '../src/features.js';
import { logEvents } from '../src/shared/log/logger.js';
import { type MetricTable, metrics } from '../src/shared/tables/metrics.js';
import { coreRows, featureRows } from './configuration-table.js';

const root = join(__dirname, '..', '..');

/** Table of a page that comes from the code alone: the page, its heading, and its rows as cells of Markdown. */
interface ReferenceTable {
  readonly page: string;
  readonly heading: string;
  readonly rows: readonly (readonly string[])[];
}

/** Returns all tables of docs that nobody writes by hand: `npm run tables` writes them, and a test compares them. */
export function referenceTables(): ReferenceTable[] {
  const events: Record<string, string> = Object.assign({}, logEvents, ...features.map((each) => each.logEvents));
  const families: MetricTable = Object.assign({}, metrics, ...features.map((feature) => feature.metrics));
  return [
    ...[['Variables', coreRows()] as const, ['Variables of features', featureRows()] as const].map(
      ([heading, rows]) => ({
        ...{ page: 'docs/configuration.md', heading },
        rows: rows.map(([name, fallback, meaning]) => [`\`${name}\``, fallback, meaning]),
      }),
    ),
    {
      page: 'docs/monitoring.md',
      heading: 'Events',
      rows: Object.entries(events).map(([name, meaning]) => [`\`${name}\``, meaning]),
    },
    {
      page: 'docs/monitoring.md',
      heading: 'Families',
      rows: Object.entries(families).map(([name, { type, labels }]) => [
        `\`model_api_${name}\``,
        type,
        labels.map((label) => `\`${label}\``).join(', ') || '–',
      ]),
    },
  ];
}

/** Returns the text of this page with the rows of its tables. The two lines above the rows of a table stay. */
export function withReferenceTables(page: string, text: string): string {
  return referenceTables()
    .filter((table) => table.page === page)
    .reduce(withRows, text);
}

function withRows(text: string, { page, heading, rows }: ReferenceTable): string {
  const lines = text.split('\n');
  const from = lines.indexOf(`## ${heading}`);
  const head = lines.findIndex((line, at) => at > from && line.startsWith('|'));
  if (from < 0 || head < 0) throw new Error(`${page} has no table below ${heading}`);
  const end = lines.findIndex((line, at) => at > head && !line.startsWith('|'));
  const cells = rows.map((row) => `| ${row.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`);
  return [...lines.slice(0, head + 2), ...cells, ...lines.slice(end < 0 ? lines.length : end)].join('\n');
}

if (require.main === module) {
  for (const page of new Set(referenceTables().map((table) => table.page))) {
    const path = join(root, page);
    writeFileSync(path, withReferenceTables(page, readFileSync(path, 'utf8')));
  }
}

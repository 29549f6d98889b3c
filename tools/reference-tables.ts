import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { commands } from '../src/command/command-line.js';
import { exitMeanings } from '../src/command/render/help.js';
import { features } from '../src/features.js';
import { readProduct } from '../src/shared/config/product.js';
import { logEvents } from '../src/shared/log/logger.js';
import { type MetricTable, metrics } from '../src/shared/tables/metrics.js';
import { browserPackages } from './browser-files.js';
import { coreRows, featureRows } from './configuration-table.js';
import { dependencyRows } from './dependency-table.js';
import { codeRows, reasonRows, retryRows, sdkErrorRows } from './error-tables.js';
import { eventResponses } from './event-responses.js';
import { keyOptionRows } from './key-option-table.js';
import { readLockfile } from './lockfile.js';
import { openApiDocument } from './openapi-document.js';

const root = join(__dirname, '..', '..');

type Rows = readonly (readonly string[])[];

/** Table of a page that comes from the code alone: the page, its heading, and its rows as cells of Markdown. */
interface ReferenceTable {
  readonly page: string;
  readonly heading: string;
  readonly rows: Rows;
}

/** Returns all tables of docs that nobody writes by hand: `npm run tables` writes them, and a test compares them. */
export async function referenceTables(): Promise<ReferenceTable[]> {
  const rowsOf: Readonly<Record<string, Readonly<Record<string, Rows>>>> = {
    'docs/api.md': { Endpoints: endpointRows((path) => !isOfOtherApi(path)) },
    'docs/batches.md': { Endpoints: endpointRows(isOfBatches) },
    'docs/clients.md': { Keys: keyOptionRows() },
    'docs/command.md': {
      Commands: commands.map(({ name, summary }) => [`\`${name}\``, summary]),
      'Exit codes': exitMeanings.map(([code, meaning]) => [String(code), meaning]),
    },
    'docs/configuration.md': {
      Variables: coreRows().map(variableRow),
      'Variables of features': featureRows().map(variableRow),
    },
    'docs/dependencies.md': await dependencyTables(),
    'docs/errors.md': { Codes: codeRows(), 'Reasons of cli_error': reasonRows(), 'Retry-After': retryRows() },
    'docs/monitoring.md': { Events: eventRows(), Families: familyRows() },
    'docs/sdks.md': {
      Endpoints: endpointRows((path) => isOfOtherApi(path) && !isOfBatches(path)),
      Errors: sdkErrorRows(),
    },
  };
  return Object.entries(rowsOf).flatMap(([page, tables]) =>
    Object.entries(tables).map(([heading, rows]) => ({ page, heading, rows })),
  );
}

function variableRow([name, ...cells]: readonly [string, string, string]): string[] {
  return [`\`${name}\``, ...cells];
}

function isOfOtherApi(path: string): boolean {
  return /^\/(?:v1|api|mcp)\b/.test(path);
}

function isOfBatches(path: string): boolean {
  return /^\/v1\/(?:files|batches|messages\/batches)\b/.test(path);
}

/** Returns a row for each endpoint whose path is wanted, in the order of the paths: method with path, and summary. */
function endpointRows(isWanted: (path: string) => boolean): string[][] {
  const { paths = {} } = openApiDocument(readProduct().version);
  return Object.entries(paths)
    .filter(([path]) => isWanted(path))
    .toSorted(([a], [b]) => a.localeCompare(b, 'en'))
    .flatMap(([path, operations]) =>
      Object.entries(operations ?? {}).map(([method, operation]) => [
        `\`${method.toUpperCase()} ${path}\``,
        String((operation as { readonly summary?: string }).summary),
      ]),
    );
}

async function dependencyTables(): Promise<Record<string, Rows>> {
  const lockfile = await readLockfile(root);
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Readonly<
    Record<'dependencies' | 'devDependencies', Readonly<Record<string, string>>>
  >;
  const rows = (names: readonly string[]) => dependencyRows(lockfile, names);
  return {
    'To run': rows(Object.keys(manifest.dependencies)),
    'In the console': rows(browserPackages.filter((name) => !(name in manifest.dependencies))),
    'To develop': rows(Object.keys(manifest.devDependencies).filter((name) => !browserPackages.includes(name))),
  };
}

/** Returns a row for each event of the log: name, meaning, and response. */
function eventRows(): string[][] {
  const events: Record<string, string> = Object.assign({}, logEvents, ...features.map((each) => each.logEvents));
  return Object.entries(events).map(([name, meaning]) => {
    const [, response = '–'] = eventResponses.find(([names]) => names.includes(name)) ?? [];
    return [`\`${name}\``, meaning, response];
  });
}

function familyRows(): string[][] {
  const families: MetricTable = Object.assign({}, metrics, ...features.map((feature) => feature.metrics));
  return Object.entries(families).map(([name, { type, labels, help }]) => [
    `\`model_api_${name}\``,
    type,
    labels.map((label) => `\`${label}\``).join(', ') || '–',
    help,
  ]);
}

/** Returns the text of this page with the rows of its tables. The two lines above the rows of a table stay. */
export function withReferenceTables(tables: readonly ReferenceTable[], page: string, text: string): string {
  return tables.filter((table) => table.page === page).reduce(withRows, text);
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

async function writeTables(): Promise<void> {
  const tables = await referenceTables();
  for (const page of new Set(tables.map((table) => table.page))) {
    const path = join(root, page);
    writeFileSync(path, withReferenceTables(tables, page, readFileSync(path, 'utf8')));
  }
}

if (require.main === module) {
  writeTables().catch((error: unknown) => {
    process.stderr.write(`${String(error)}\n`);
    process.exitCode = 1;
  });
}

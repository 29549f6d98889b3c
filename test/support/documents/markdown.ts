import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './sources.js';

/**
 * Returns the rows of the first table under a heading, without the head, as plain text; cells with only code lose the
 * backticks.
 */
export function tableUnder(heading: string, file: string): string[][] {
  const lines = readFileSync(join(root, file), 'utf8').split('\n');
  const from = lines.findIndex((line) => /^#+ /.test(line) && line.replace(/^#+ /, '') === heading);
  if (from < 0) throw new Error(`${file} has no heading ${heading}`);
  const table = lines.slice(lines.findIndex((line, at) => at > from && line.startsWith('|')));
  const end = table.findIndex((line) => !line.startsWith('|'));
  return table.slice(2, end < 0 ? undefined : end).map(cellsOf);
}

function cellsOf(row: string): string[] {
  const cells = row.split(/(?<!\\)\|/).slice(1, -1);
  return cells.map((cell) =>
    cell
      .trim()
      .replaceAll('\\|', '|')
      .replace(/^`([^`]*)`$/, '$1'),
  );
}

/** Row of a file in CSV, with the number of the line in which it begins. */
export interface CsvRow {
  readonly line: number;
  readonly cells: readonly string[];
}

/** Fault of a line. */
export interface LineFault {
  readonly line: number;
  readonly message: string;
}

interface ReadCsv {
  readonly rows: readonly CsvRow[];
  readonly faults: readonly LineFault[];
}

/**
 * Parses CSV with commas, semicolons or tabs, and with any ends of lines. Rows without text are left out. A cell in
 * quotation marks may contain the separator, and quotation marks that are doubled, but no end of a line: else one missing
 * mark would hide all later rows.
 */
export function readCsv(text: string): ReadCsv {
  const lines = text.split(/\r\n|\n|\r/);
  const named = /^sep=([,;\t])$/i.exec(lines[0] ?? '')?.[1]; // Excel writes this line
  const separator = named ?? separatorIn(lines.find((line) => line.trim() !== '') ?? '');
  const rows: CsvRow[] = [];
  const faults: LineFault[] = [];
  for (const [index, text] of lines.entries()) {
    if (index === 0 && named !== undefined) continue;
    const line = index + 1;
    const cells = cellsOf(text, separator);
    if (typeof cells === 'string') faults.push({ line, message: cells });
    else if (cells.some((cell) => cell !== '')) rows.push({ line, cells });
  }
  return { rows, faults };
}

/** Returns the separator that is most frequent in a line, outside of quotation marks. */
function separatorIn(line: string): string {
  const plain = line.replace(/"[^"]*"/g, '');
  const counts = [';', '\t', ','].map((each) => [plain.split(each).length, each] as const);
  return counts.reduce((most, each) => (each[0] > most[0] ? each : most), [1, ',']).at(1) as string;
}

/** Returns the cells of a line without blanks at their ends, or what is wrong with its quotation marks. */
function cellsOf(line: string, separator: string): string[] | string {
  const cells: string[] = [];
  for (let at = 0; at <= line.length; at++) {
    const isQuoted = /^\s*"/.test(line.slice(at, at + 80));
    const from = isQuoted ? line.indexOf('"', at) : at;
    const end = isQuoted ? closingMark(line, from) : from;
    if (end < 0) return 'a quotation mark is not closed in its line';
    const next = line.indexOf(separator, end);
    const stop = next < 0 ? line.length : next;
    if (isQuoted && line.slice(end + 1, stop).trim() !== '') return 'there is text after a closing quotation mark';
    const cell = isQuoted ? line.slice(from + 1, end).replaceAll('""', '"') : line.slice(from, stop);
    cells.push(cell.trim());
    at = stop;
  }
  return cells;
}

/** Returns the position of the quotation mark that closes the one at `from`; -1 if there is none. */
function closingMark(line: string, from: number): number {
  for (let at = line.indexOf('"', from + 1); at >= 0; at = line.indexOf('"', at + 2))
    if (line[at + 1] !== '"') return at;
  return -1;
}

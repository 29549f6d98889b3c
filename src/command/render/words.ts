/** A length of time in the two units that matter, such as `3 h 12 min`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 10) return `${Number(seconds.toFixed(1))} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return two(Math.floor(whole / 60), 'min', whole % 60, 's');
  const minutes = Math.floor(whole / 60);
  if (minutes < 24 * 60) return two(Math.floor(minutes / 60), 'h', minutes % 60, 'min');
  const hours = Math.floor(minutes / 60);
  return two(Math.floor(hours / 24), 'd', hours % 24, 'h');
}

function two(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`;
}

/** Three digits at most where there is a fraction: 0.25, 3.1, 42, 1,234. */
export function figure(value: number): string {
  const digits = value === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return new Intl.NumberFormat('en', { maximumFractionDigits: digits }).format(value);
}

export function counted(count: number, one: string, many = `${one}s`): string {
  return `${figure(count)} ${count === 1 ? one : many}`;
}

/** Rows with their first column at one width. */
export function labelled(rows: readonly (readonly [label: string, text: string])[], mark = (label: string) => label) {
  const width = Math.max(...rows.map(([label]) => label.length));
  return rows.map(([label, text]) => `${mark(label.padEnd(width))}  ${text}`);
}

/** A table whose columns are as wide as they need to be; the last one is left open. */
export function aligned(rows: readonly (readonly string[])[]): string[] {
  const widthOf = (column: number) => Math.max(...rows.map((row) => row[column]?.length ?? 0));
  return rows.map((row) =>
    row
      .map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widthOf(column))))
      .join('  ')
      .trimEnd(),
  );
}

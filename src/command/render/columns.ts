import { wrapped } from '../../shared/text/format.js';

/** Minimum readable width of a text column. */
const minTextColumns = 30;

/** Puts each text next to its label, or below the label if the width is too small. No line exceeds the width. */
export function wrappedRows(
  rows: readonly (readonly [label: string, text: string])[],
  columns: number,
  style = (label: string) => label,
): string[] {
  const width = Math.max(...rows.map(([label]) => label.length)) + 2;
  const isBeside = columns - width >= minTextColumns;
  return rows.flatMap(([label, text]) => {
    if (!isBeside) return [style(label), ...wrapped(text, columns - 4).map((line) => `    ${line}`)];
    const [first = '', ...rest] = wrapped(text, columns - width);
    return [`${style(label.padEnd(width - 2))}  ${first}`.trimEnd(), ...rest.map((line) => ' '.repeat(width) + line)];
  });
}

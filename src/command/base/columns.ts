/** Pads the cells of each column to the same width, except the last column. */
export function alignColumns(rows: readonly (readonly string[])[]): string[] {
  const widthOf = (column: number) => Math.max(...rows.map((row) => row[column]?.length ?? 0));
  return rows.map((row) =>
    row
      .map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widthOf(column))))
      .join('  ')
      .trimEnd(),
  );
}

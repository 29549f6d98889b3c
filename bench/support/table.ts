/** The answer to a question: what the issue asks for, and what was found. */
export interface Row {
  readonly question: string;
  readonly target: string;
  readonly measured: string;
  readonly holds: boolean;
}

export function markdownTable(rows: readonly Row[]): string {
  const lines = rows.map(({ question, target, measured, holds }) => [
    question,
    target,
    measured,
    holds ? 'yes' : '**no**',
  ]);
  return [['Question', 'Target', 'Measured', 'Holds'], ['---', '---', '---', '---'], ...lines]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n');
}

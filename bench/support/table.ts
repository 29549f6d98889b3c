/** The answer to a question: what the issue asks for, and what was found. */
export interface Row {
  readonly question: string;
  readonly target: string;
  readonly measured: string;
  /** null where the issue only asks how much it is. */
  readonly holds: boolean | null;
}

export function markdownTable(rows: readonly Row[]): string {
  const lines = rows.map(({ question, target, measured, holds }) => [
    question,
    target,
    measured,
    holds === null ? '–' : holds ? 'yes' : '**no**',
  ]);
  return [['Question', 'Target', 'Measured', 'Holds'], ['---', '---', '---', '---'], ...lines]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n');
}

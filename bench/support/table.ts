/** Answer to a question of the issue, with the target and the measured result. */
export interface Row {
  readonly question: string;
  readonly target: string;
  readonly measured: string;
  /** Whether the target is met; null if the issue has no target. */
  readonly holds: boolean | null;
}

export const tableHead = `${line(['Question', 'Target', 'Measured', 'Holds'])}\n${line(['---', '---', '---', '---'])}`;

export function tableLine({ question, target, measured, holds }: Row): string {
  return line([question, target, measured, holds === null ? '–' : holds ? 'yes' : '**no**']);
}

function line(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}

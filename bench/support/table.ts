/** The answer to a question: what the issue asks for, and what was found. */
export interface Row {
  readonly question: string;
  readonly target: string;
  readonly measured: string;
  /** null where the issue only asks how much it is. */
  readonly holds: boolean | null;
}

export const tableHead = `${line(['Question', 'Target', 'Measured', 'Holds'])}\n${line(['---', '---', '---', '---'])}`;

export function tableLine({ question, target, measured, holds }: Row): string {
  return line([question, target, measured, holds === null ? '–' : holds ? 'yes' : '**no**']);
}

function line(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}

/**
 * Ids of user lines, in the form of a UUID. The CLI (2.1.330) compares only the first 24 characters when it looks for the
 * target of a rewinding, so that ids differ in the first 8.
 */
const turnSuffix = '-0000-4000-8000-000000000000';
const historySuffix = '-0000-4000-9000-000000000000';
const additionSuffix = '-0000-4000-a000-000000000000';

/**
 * Returns the id of a turn's user line, which is unique within one process. Newer versions (2.1.330, not 2.1.197) name it
 * in the lines that answer the turn.
 */
export function turnIdOf(turn: number): string {
  return `${turn.toString(16).padStart(8, '0')}${turnSuffix}`;
}

/** Returns the id of a user line of the history, which is unique within one process. */
export function historyIdOf(line: number): string {
  return `${line.toString(16).padStart(8, '0')}${historySuffix}`;
}

/** Returns the id of a line that is added to a running turn, which is unique within one process. */
export function additionIdOf(line: number): string {
  return `${line.toString(16).padStart(8, '0')}${additionSuffix}`;
}

/** Whether a line names another turn of this service. Ids of any other form are ignored. */
export function isOfOtherTurn(named: string | null | undefined, turn: number | null): boolean {
  return turn !== null && named?.endsWith(turnSuffix) === true && named !== turnIdOf(turn);
}

/** Begin of the ids of turns. */
const prefix = '00000000-0000-4000-8000-';

/**
 * Returns the id of a turn's user line. Newer versions (2.1.330, not 2.1.197) name it in the lines that answer the
 * turn. The id must have the form of a UUID, and is unique within one process.
 */
export function turnIdOf(turn: number): string {
  return `${prefix}${turn.toString(16).padStart(12, '0')}`;
}

/** Returns the id of a user line of the history, which is unique within one process. */
export function historyIdOf(line: number): string {
  return `00000000-0000-4000-9000-${line.toString(16).padStart(12, '0')}`;
}

/** Whether a line names another turn of this service. Ids of any other form are ignored. */
export function isOfOtherTurn(named: string | null | undefined, turn: number | null): boolean {
  return turn !== null && named?.startsWith(prefix) === true && named !== turnIdOf(turn);
}

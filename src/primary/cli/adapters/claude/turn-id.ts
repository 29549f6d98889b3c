/**
 * The id of a turn as claude knows it: that of its user line. Newer versions (2.1.330 does, 2.1.197 does not) name it in
 * the lines that answer the turn. It must look like a UUID, and is unique within one process.
 */
export function turnIdOf(turn: number): string {
  return `${prefix}${turn.toString(16).padStart(12, '0')}`;
}

const prefix = '00000000-0000-4000-8000-';

/** Whether a line names a turn of ours, and not this one. An id that we have not given tells nothing. */
export function isOfOtherTurn(named: string | null | undefined, turn: number | null): boolean {
  return turn !== null && named?.startsWith(prefix) === true && named !== turnIdOf(turn);
}

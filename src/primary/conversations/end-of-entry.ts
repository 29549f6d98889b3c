/** Ends what was begun for a turn before it was admitted. */
export type EndOfEntry = () => void;

/** The entry ends as soon as the job was admitted or refused. */
export function endingEntry<T>(endOfEntry: EndOfEntry, admit: () => T): T {
  try {
    return admit();
  } finally {
    endOfEntry();
  }
}

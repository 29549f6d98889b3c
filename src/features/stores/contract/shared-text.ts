/** A text that all hosts with the same store share. All methods reject with `store_unavailable`. */
export interface SharedText {
  /**
   * Returns what `parse` makes of the text (null if there is none) if the text differs from the one last read or written
   * here, else null. If `parse` throws, this rejects, and the text counts as unread.
   */
  readText<T>(parse: (text: string | null) => T): Promise<T | null>;
  /**
   * Replaces the text. Resolves with false, and changes nothing, if another host has changed it since it was last read or
   * written here.
   */
  writeText(text: string): Promise<boolean>;
}

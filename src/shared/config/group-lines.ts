/** Line of a group, as far as it concerns its members. */
interface NamedGroup {
  readonly name: string;
  readonly expiresAt?: number | null | undefined;
}

/** Group that has ended or will end, and the time. */
export interface GroupEnd {
  readonly group: string;
  readonly expiresAt: number;
}

/** Owns the lines of groups by name. */
export class GroupLines<Line extends NamedGroup> {
  readonly #byName: ReadonlyMap<string, Line>;

  constructor(lines: readonly Line[]) {
    this.#byName = new Map(lines.map((line) => [line.name, line]));
  }

  /** Returns the lines of these groups in the order of the file. Groups without a line have none. */
  linesOf(names: readonly string[]): Line[] {
    return names.length === 0 ? [] : [...this.#byName.values()].filter(({ name }) => names.includes(name));
  }

  /**
   * Returns the end of the access that these groups give to a member: that of the last group to end; null if a group with
   * a line does not end, or no group has a line.
   */
  endOf(names: readonly string[]): GroupEnd | null {
    let last: GroupEnd | null = null;
    for (const name of names) {
      const line = this.#byName.get(name);
      if (line === undefined) continue;
      const expiresAt = line.expiresAt ?? null;
      if (expiresAt === null) return null;
      if (last === null || expiresAt > last.expiresAt) last = { group: name, expiresAt };
    }
    return last;
  }
}

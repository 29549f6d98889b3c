/** Name of a person. One spelling for each person: without capital letters, blanks and letters of other alphabets. */
export const personName = /^[a-z0-9][a-z0-9._@+-]{0,119}$/;

/** Name of a group. It may contain blanks between its words. */
export const groupName = /^[!-~](?:[ -~]{0,254}[!-~])?$/;
/** Maximum number of groups of a person. */
export const maxGroups = 200;

const groupPrefix = 'group:';

/** Owns the lines of the keys file for people. */
export class PersonLines<Line extends { readonly name: string }> {
  readonly #byName: ReadonlyMap<string, Line>;
  readonly #groups: readonly Line[];

  constructor(lines: readonly Line[]) {
    this.#byName = new Map(lines.map((line) => [line.name, line]));
    this.#groups = lines.filter(({ name }) => name.startsWith(groupPrefix));
  }

  /**
   * Returns the line that applies to a person: that of the person, else the first line of one of the groups, else that
   * of everybody; null if there is none.
   */
  find(person: string, groups: readonly string[]): Line | null {
    const ownLine = this.#byName.get(person);
    if (ownLine !== undefined) return ownLine;
    const names = new Set(groups.map((group) => groupPrefix + group));
    return this.#groups.find(({ name }) => names.has(name)) ?? this.#byName.get('*') ?? null;
  }
}

/** Line of a group, as far as it concerns its members. */
interface NamedGroup {
  readonly name: string;
  readonly outer?: string | undefined;
  readonly expiresAt?: number | null | undefined;
}

/** Group that has ended or will end, and the time. */
export interface GroupEnd {
  readonly group: string;
  readonly expiresAt: number;
}

/** Limit of groups that are in each other. */
const maxDepth = 5;

/** Owns the lines of groups by name. */
export class GroupLines<Line extends NamedGroup> {
  readonly #byName: ReadonlyMap<string, Line>;

  constructor(lines: readonly Line[]) {
    this.#byName = new Map(lines.map((line) => [line.name, line]));
  }

  /**
   * Returns the lines of these groups in the order of the file, each before those of the groups around it. Groups without
   * a line have none.
   */
  linesOf(names: readonly string[]): Line[] {
    if (names.length === 0) return [];
    const named = [...this.#byName.values()].filter(({ name }) => names.includes(name));
    return [...new Set(named.flatMap(({ name }) => this.chainOf(name)))];
  }

  /** Returns the line of a group, then those of the groups around it. */
  chainOf(name: string): Line[] {
    const chain: Line[] = [];
    for (let line = this.#byName.get(name); line !== undefined && chain.length < maxDepth; ) {
      chain.push(line);
      line = line.outer === undefined ? undefined : this.#byName.get(line.outer);
    }
    return chain;
  }

  /** Returns what is wrong with the groups around a group; null if nothing is. */
  outerFault(name: string): string | null {
    const chain = this.chainOf(name);
    const outer = chain.at(-1)?.outer;
    const names = [...chain.map((line) => line.name), ...(outer === undefined ? [] : [outer])];
    const again = names.indexOf(name, 1);
    if (again > 0) return `the group ${name} is in itself: ${names.slice(0, again + 1).join(' in ')}`;
    return names.length > maxDepth ? `the group ${name} is in more than ${maxDepth - 1} groups` : null;
  }

  /**
   * Returns the end of the access that these groups give to a member: that of the last group to end; null if a group with
   * a line does not end, or no group has a line. A group ends with each group around it.
   */
  endOf(names: readonly string[]): GroupEnd | null {
    let last: GroupEnd | null = null;
    for (const name of names) {
      const chain = this.chainOf(name);
      if (chain.length === 0) continue;
      const end = firstEndOf(chain);
      if (end === null) return null;
      if (last === null || end.expiresAt > last.expiresAt) last = end;
    }
    return last;
  }
}

function firstEndOf(chain: readonly NamedGroup[]): GroupEnd | null {
  let first: GroupEnd | null = null;
  for (const { name, expiresAt = null } of chain)
    if (expiresAt !== null && (first === null || expiresAt < first.expiresAt)) first = { group: name, expiresAt };
  return first;
}

import { setNewest } from '../../shared/bounded-map.js';
import { type ClientText, groupUsage, type UsageName } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import {
  type ApiKey,
  clientOf,
  type GroupLine,
  type KeyOptions,
  plainOptions,
  wholeService,
} from '../../shared/config/api-keys.js';
import { GroupLines } from '../../shared/config/group-lines.js';

/** Line of a group, with those who belong to the group. */
export interface ClientGroup extends GroupLine {
  /** Clients whose usage counts for the group, and the usage of the group; null for all clients. See `spendersOf`. */
  readonly holders: readonly UsageName[] | null;
}

/** Options of a member, and what they were made from. */
interface MemberOptions {
  readonly line: KeyOptions;
  readonly source: object;
  readonly options: KeyOptions;
}

/** Returns options in which those of `bound` replace each one that allows more. */
type Bounded = (options: KeyOptions, bound: Partial<KeyOptions>) => KeyOptions;

/** Limit of clients whose options are remembered. */
const maxRemembered = 20_000;

/** Owns the groups that have a line, until they end, and the options that each line sets for its members. */
export class ClientGroups {
  readonly lines: readonly GroupLine[];
  readonly #clock: Pick<Clock, 'now'>;
  readonly #all: GroupLines<GroupLine>;
  readonly #holders: ReadonlyMap<string, readonly ClientText[]>;
  /** Groups that had not ended when they were last read. */
  #active: ReadonlyMap<string, ClientGroup> = new Map();
  #hasEach = false;
  /** Time at which the lines were last read. The clock may be set back. */
  #readAt = 0;
  /** Time at which the next group ends. */
  #nextEnd = Number.NEGATIVE_INFINITY;
  readonly #options = new Map<string, MemberOptions>();

  constructor(lines: readonly GroupLine[], operatorKeys: readonly ApiKey[], clock: Pick<Clock, 'now'>) {
    this.lines = lines;
    this.#clock = clock;
    this.#all = new GroupLines(lines);
    this.#holders = holdersOf(operatorKeys, this.#all);
  }

  /** Groups that have a line and have not ended, and the whole service if it has a line. */
  get active(): ReadonlyMap<string, ClientGroup> {
    const now = this.#clock.now();
    if (this.#readAt <= now && now < this.#nextEnd) return this.#active;
    this.#readAt = now;
    const ends = this.lines.flatMap(({ expiresAt }) => expiresAt ?? []);
    const lines = this.lines.filter(
      ({ name }) => now < (this.#all.endOf([name])?.expiresAt ?? Number.POSITIVE_INFINITY),
    );
    this.#nextEnd = Math.min(...ends.filter((end) => now < end), Number.POSITIVE_INFINITY);
    this.#active = new Map(lines.map((line) => [line.name, { ...line, holders: this.#holdersOf(line.name) }]));
    this.#hasEach = lines.some(({ each }) => each !== undefined);
    this.#options.clear();
    return this.#active;
  }

  /** Returns those of these groups that have a line and have not ended, with the groups around them, each once. */
  find(names: readonly string[]): ClientGroup[] {
    const { active } = this;
    const groups = names.flatMap((name) => (active.has(name) ? this.#all.chainOf(name) : []));
    return [...new Set(groups)].flatMap(({ name }) => active.get(name) ?? []);
  }

  /** Whether a group has a line, also if it has ended. */
  hasLine(name: string): boolean {
    return this.#all.chainOf(name).length > 0;
  }

  /** Returns the end of the access that these groups give to a member, see `GroupLines`. */
  endOf(names: readonly string[]) {
    return this.#all.endOf(names);
  }

  /**
   * Returns the options of a member of these groups: the own ones, then those that the first line of a group sets for its
   * members. `groupsOf` returns the names of the groups, which stay the same while `source` does. `bounded`: returns the
   * own options of a member whose options cannot allow more than those that the groups set.
   */
  optionsOf(
    client: ClientText,
    line: KeyOptions,
    source: object,
    groupsOf: () => readonly string[],
    bounded: Bounded | null = null,
  ): KeyOptions {
    const { active } = this;
    if (!this.#hasEach) return line;
    const known = this.#options.get(client);
    if (known?.line === line && known.source === source) return known.options;
    const names = groupsOf();
    const lines = this.#all.linesOf(names.filter((name) => active.has(name)));
    const filledBy = (own: KeyOptions) => lines.reduce((filled, { each = {} }) => withDefaults(filled, each), own);
    const options = filledBy(bounded === null ? line : bounded(line, filledBy(plainOptions)));
    setNewest(this.#options, client, { line, source, options }, maxRemembered);
    return options;
  }

  #holdersOf(name: string): readonly UsageName[] | null {
    return name === wholeService ? null : [...(this.#holders.get(name) ?? []), groupUsage(name)];
  }
}

/** Returns the keys of each group that has a line, with those of the groups in it. */
function holdersOf(
  operatorKeys: readonly ApiKey[],
  lines: GroupLines<GroupLine>,
): ReadonlyMap<string, readonly ClientText[]> {
  const holders = new Map<string, ClientText[]>();
  for (const key of operatorKeys) {
    for (const { name } of lines.chainOf(key.group ?? '')) {
      const members = holders.get(name) ?? [];
      members.push(clientOf(key));
      holders.set(name, members);
    }
  }
  return holders;
}

/** Returns options with those of `defaults` that they do not set. */
function withDefaults(options: KeyOptions, defaults: Partial<KeyOptions>): KeyOptions {
  const missing = Object.entries(defaults).filter(
    ([name]) => options[name as keyof KeyOptions] === plainOptions[name as keyof KeyOptions],
  );
  const featureOptions = { ...defaults.featureOptions, ...options.featureOptions };
  return { ...options, ...Object.fromEntries(missing), featureOptions };
}

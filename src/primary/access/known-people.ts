import { setNewest } from '../../shared/bounded-map.js';
import { type ClientText, holderOf, readClientId } from '../../shared/client.js';
import type { AddedKey, PersonLine } from '../../shared/config/api-keys.js';
import { PersonLines } from '../../shared/config/people.js';

/** Limit of people whose groups are known. Those who have sent no request for the longest time are removed. */
const maxPeople = 10_000;

/** Owns the groups of people, and the line that applies to each. */
export class KnownPeople {
  lines: readonly PersonLine[] = [];
  #search: PersonLines<PersonLine>;
  #firstGroups: ReadonlyMap<string, readonly string[]> = new Map();
  readonly #noGroups: readonly string[] = [];
  readonly #known = new Map<ClientText, { readonly groups: readonly string[]; readonly line: PersonLine | null }>();
  /** Groups of people who have sent no request yet, but whose jobs wait. */
  readonly #jobGroups = new Map<ClientText, readonly string[]>();

  constructor(lines: readonly PersonLine[]) {
    this.lines = lines;
    this.#search = new PersonLines(lines);
  }

  get clients(): Iterable<ClientText> {
    return this.#known.keys();
  }

  replaceLines(lines: readonly PersonLine[]): void {
    this.lines = lines;
    this.#search = new PersonLines(lines);
    for (const [client, { groups }] of this.#known)
      this.#known.set(client, { groups, line: this.#find(client, groups) });
  }

  recordGroups(client: ClientText, groups: readonly string[]): void {
    setNewest(this.#known, client, { groups, line: this.#find(client, groups) }, maxPeople);
    this.#jobGroups.delete(client);
  }

  /** Records the groups of a job, which count until its person sends a request. */
  recordJob(client: ClientText, groups: readonly string[]): void {
    const person = holderOf(client);
    const isPerson = person === client && readClientId(client).kind === 'sso';
    if (isPerson && !this.#known.has(client)) setNewest(this.#jobGroups, client, groups, maxPeople);
  }

  /** Sets the groups of people who have sent no request yet: those of their keys. */
  replaceFirstGroups(keys: readonly AddedKey[]): void {
    const first = new Map<ClientText, readonly string[]>();
    for (const { client, groups } of keys)
      first.set(holderOf(client), [...(first.get(holderOf(client)) ?? []), ...groups]);
    this.#firstGroups = first;
  }

  /** Whether the person of a client has sent a request. */
  isKnown(client: ClientText): boolean {
    return this.#known.has(holderOf(client));
  }

  /** Returns the groups that the person of a client had at the last request; until then those of the person's jobs or keys. */
  groupsOf(client: ClientText): readonly string[] {
    const person = holderOf(client);
    const known = this.#known.get(person)?.groups;
    return known ?? this.#jobGroups.get(person) ?? this.#firstGroups.get(person) ?? this.#noGroups;
  }

  /** Returns the line for the person of a client. Until the person has sent a request, no group is known. */
  lineOf(client: ClientText): PersonLine | null {
    const person = holderOf(client);
    const known = this.#known.get(person);
    return known === undefined ? this.#find(person, []) : known.line;
  }

  /**
   * Returns the time at which the access of the person of a client ends; null for never. While the groups of the person
   * are unknown, the line for everybody counts only if no group has a line.
   */
  expiryOf(client: ClientText): number | null {
    const line = this.lineOf(client);
    const isKnown = this.#known.has(holderOf(client)) || !this.lines.some(({ name }) => name.startsWith('group:'));
    return line === null || (line.name === '*' && !isKnown) ? null : line.expiresAt;
  }

  #find(client: ClientText, groups: readonly string[]): PersonLine | null {
    const { kind, name } = readClientId(client);
    return kind === 'sso' ? this.#search.find(name, groups) : null;
  }
}

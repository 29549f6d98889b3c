import type { PrimaryCore } from '../../primary/features/feature.js';
import { type ClientText, holderOf, keyClient, ssoClient, writeClientId } from '../../shared/client.js';
import { clientOf, digestOf, type GroupLine, type KeyOptions, plainOptions } from '../../shared/config/api-keys.js';
import { GroupLines } from '../../shared/config/group-lines.js';
import type { OptionTable } from '../../shared/config/key-options.js';
import { dayText } from '../../shared/config/key-values.js';
import { invalid, RelayError } from '../../shared/errors.js';
import type { Actor } from '../../shared/ipc/protocol.js';
import { type MadeKeys, randomKey, randomKeyId } from '../keys-api/made-keys.js';
import { type MadeKey, madeKeyClient } from '../keys-api/records.js';
import { jobCounts } from '../usage/csv.js';
import type { UsagePart } from '../usage/primary.js';
import { figureIn, type UsageRow } from '../usage/report-form.js';
import type { KnownMember, KnownMembers } from './known-members.js';
import { courseName, keyNameOf, loginFault, spelling } from './roster.js';
import {
  adminName,
  type Course,
  type CourseDetail,
  type Enrolment,
  type MemberView,
  maxMembers,
  memberOptions,
} from './shared.js';

/** Changes of options of a member; null removes one. */
type MemberChanges = Readonly<Record<string, string | null>>;

interface CoursesParts {
  readonly usage: Pick<UsagePart, 'report'>;
  readonly clients: PrimaryCore['clients'];
  readonly keys: Pick<MadeKeys, 'update' | 'changeOptions' | 'all'>;
  readonly keyOptions: OptionTable;
  /** Present and former members. */
  readonly known: Pick<KnownMembers, 'membersOf'>;
  readonly now: () => number;
}

/** Key of a member, or line of a person who is one. */
interface MemberLine {
  readonly line: KeyOptions & { readonly name: string };
  readonly client: ClientText;
  /** Whether the member was added over HTTP. */
  readonly isKept: boolean;
}

type Used = Pick<MemberView, 'jobs' | 'failed' | 'tokens' | 'cost_usd'>;

const unused: Used = { jobs: 0, failed: 0, tokens: 0, cost_usd: 0 };

/**
 * Shows courses, and changes their members, for administrators and for teachers. A course is a group whose line in the
 * keys file has an end. A teacher sees and changes one group alone.
 */
export class Courses {
  readonly #parts: CoursesParts;

  constructor(parts: CoursesParts) {
    this.#parts = parts;
  }

  async list(by: Actor): Promise<Course[]> {
    const lines = this.#parts.clients.groupLines.filter((line) => this.#mayAdminister(by, line));
    if (lines.length === 0) return [];
    const usage = await this.#readUsage();
    return lines.map((line) => this.#courseOf(line, this.#allMembersOf(line.name, usage)));
  }

  async show(by: Actor, name: string): Promise<CourseDetail> {
    const line = this.#find(by, name);
    const members = this.#allMembersOf(line.name, await this.#readUsage());
    return { course: this.#courseOf(line, members), members };
  }

  /** Adds people who are no members yet: all of them or nobody. */
  enrol(by: Actor, course: string, logins: readonly string[], options: MemberChanges): Promise<Enrolment> {
    const people = new Map(
      logins.map((login, index) => [spelling(login), { index, key: randomKey(), id: randomKeyId() }]),
    );
    return this.#parts.keys.update(by, 'key_made', (keys) => {
      const line = this.#findOpen(by, course);
      const checked = this.#limitsOf(line, plainOptions, options);
      const made: MadeKey[] = [];
      const members = new Set(this.#linesIn(new Set([course])).map(({ line: { name } }) => name));
      const taken = new Set(this.#parts.clients.keyNames);
      const formerOf = clientsByName(this.#parts.known.membersOf(course));
      const [added, staying]: [Enrolment['added'], string[]] = [[], []];
      for (const [login, { index, key, id }] of people) {
        const name = this.#nameOf(course, login, index);
        if (members.has(name)) staying.push(login);
        else {
          const client = madeKeyClient(null, { name, id });
          if (taken.has(name)) throw invalid(`logins.${index}`, `another key already has the name ${name}`);
          taken.add(name);
          const identity = {
            name,
            client,
            digest: digestOf(key),
            owner: `@${course}` as const,
            madeAt: this.#parts.now(),
          };
          const former = formerOf.get(name);
          made.push({ ...identity, groups: [], ...(former && { former }), ...checked, group: course });
          added.push({ login, name, client, key });
        }
      }
      const ownCount = keys.filter((each) => isKeptBy(each, course)).length;
      if (ownCount + made.length > maxMembers)
        throw new RelayError('forbidden', `a course has at most ${maxMembers} members who were added over HTTP`);
      return { changed: made, keys: [...keys, ...made], answer: { added, staying } };
    });
  }

  /** Members of all courses at present. */
  get present(): KnownMember[] {
    const courses = new Set(this.#parts.clients.groupLines.filter(isCourse).map(({ name }) => name));
    return this.#linesIn(courses).map(({ line: { group, name }, client }) => ({ course: group ?? '', name, client }));
  }

  async limit(by: Actor, course: string, name: string, options: MemberChanges): Promise<MemberView> {
    await this.#parts.keys.update(by, 'key_changed', (keys) => {
      const line = this.#find(by, course);
      const key = this.#findKept(keys, course, name);
      const changed = { ...key, ...this.#limitsOf(line, key, options) };
      return { changed: [key], keys: keys.map((each) => (each === key ? changed : each)), answer: null };
    });
    const { members } = await this.show(by, course);
    const member = members.find((each) => each.name === name && each.may_change);
    if (member === undefined) throw noMember();
    return member;
  }

  removeMember(by: Actor, course: string, name: string): Promise<object> {
    return this.#parts.keys.update(by, 'key_removed', (keys) => {
      this.#find(by, course);
      const key = this.#findKept(keys, course, name);
      return { changed: [key], keys: keys.filter((each) => each !== key), answer: {} };
    });
  }

  /** Returns the group that an actor administers as a teacher; null if there is none. */
  #groupOf({ client }: Actor): string | null {
    return this.#parts.clients.ownOptionsOf(client).featureOptions[adminName]?.slice(1) ?? null;
  }

  #mayAdminister(by: Actor, { name, expiresAt = null }: GroupLine): boolean {
    if (!courseName.test(name)) return false;
    return by.isAdmin ? expiresAt !== null : this.#groupOf(by) === name;
  }

  /** Returns the line of a course. A teacher gets the same error for the course of another as for none. */
  #find(by: Actor, name: string): GroupLine {
    const line = this.#parts.clients.groupLines.find((each) => each.name === name);
    if (line === undefined || !this.#mayAdminister(by, line)) throw new RelayError('not_found', 'no such course');
    return line;
  }

  #findOpen(by: Actor, name: string): GroupLine {
    const line = this.#find(by, name);
    if (line.isClosed)
      throw new RelayError('forbidden', `the line of ${name} in the keys file has a fault: tell the operator`);
    if ((line.expiresAt ?? Number.POSITIVE_INFINITY) > this.#parts.now()) return line;
    throw new RelayError('forbidden', `the course ${name} has ended`);
  }

  /** Returns a member who was added over HTTP. */
  #findKept(keys: readonly MadeKey[], course: string, name: string): MadeKey {
    const key = keys.find((each) => each.name === name && isKeptBy(each, course));
    if (key !== undefined) return key;
    if (this.#isMember(course, name))
      throw new RelayError('forbidden', `the operator has added ${name}: only the operator can change this member`);
    throw noMember();
  }

  #isMember(course: string, name: string): boolean {
    return this.#linesIn(new Set([course])).some(({ line }) => line.name === name);
  }

  #nameOf(course: string, login: string, index: number): string {
    const fault = loginFault(login);
    if (fault !== null) throw invalid(`logins.${index}`, fault);
    return keyNameOf(course, login);
  }

  /** Applies changes of a teacher. Throws `validation_error` for an option that allows more than the line of the group. */
  #limitsOf(line: GroupLine, old: KeyOptions, changes: MemberChanges): KeyOptions {
    const odd = Object.keys(changes).find((name) => !memberOptions.some((each) => each === name));
    if (odd !== undefined) throw invalid(odd, 'is no option of a member');
    const changed = this.#parts.keys.changeOptions(old, changes);
    const { name: _, each: ___, isClosed: __, ...own } = line;
    const each = eachOf(new GroupLines(this.#parts.clients.groupLines).chainOf(line.name));
    const set = Object.keys(changes).filter((name) => changes[name] !== null);
    for (const bound of [own, each].map((options) => ({ ...plainOptions, ...options }))) {
      const options = this.#parts.keyOptions.entries.filter(([name]) => set.includes(name));
      const exceeded = options.find(([, { http }]) => http?.isWithin(changed, bound) === false);
      if (exceeded === undefined) continue;
      const [name, option] = exceeded;
      throw invalid(name, `must not allow more than the course does, which has ${option.text(bound, false)}`);
    }
    return changed;
  }

  #courseOf(line: GroupLine, members: readonly MemberView[]): Course {
    const until = line.expiresAt == null ? null : dayText(line.expiresAt);
    const limits = this.#parts.keyOptions.groupTexts(line);
    const present = members.filter(({ has_left: hasLeft }) => hasLeft !== true);
    return { name: line.name, until, limits, members: present.length, ...members.reduce<Used>(sumOf, unused) };
  }

  /** Returns the members, then those who have left. The usage of a member who has come back is in one line. */
  #allMembersOf(course: string, usage: ReadonlyMap<string, Used>): MemberView[] {
    const present = this.#membersOf(course, usage);
    const counted = new Set(present.flatMap(({ client }) => [client, ...this.#parts.clients.formerClientsOf(client)]));
    const left = this.#parts.known.membersOf(course).filter(({ client }) => !counted.has(client));
    const noRights: Pick<MemberView, 'may_change' | 'limits' | 'has_left'> = {
      may_change: false,
      limits: [],
      has_left: true,
    };
    return [
      ...present,
      ...left.map(({ name, client }) => ({ name, client, ...noRights, ...(usage.get(client) ?? unused) })),
    ];
  }

  /** Returns the members of a course. `usage`: by holder. */
  #membersOf(course: string, usage: ReadonlyMap<string, Used>): (MemberView & { readonly client: ClientText })[] {
    const { clients } = this.#parts;
    const each = eachOf(new GroupLines(clients.groupLines).chainOf(course));
    const usedBy = (client: ClientText) =>
      [client, ...clients.formerClientsOf(client)].map((one) => usage.get(one) ?? unused).reduce(sumOf);
    return this.#linesIn(new Set([course])).map(({ line, client, isKept }) => ({
      ...{ name: line.name, client, may_change: isKept, limits: this.#limitTexts(line, isKept ? each : {}) },
      ...usedBy(client),
    }));
  }

  /** Returns the keys of the members of these courses and the lines of people in them, without teachers. */
  #linesIn(courses: ReadonlySet<string>): MemberLine[] {
    const { clients, keys } = this.#parts;
    const isIn = ({ group, featureOptions }: KeyOptions) =>
      group !== null && courses.has(group) && featureOptions[adminName] === undefined;
    const isPerson = (name: string) => name !== '*' && !name.startsWith('group:');
    return [
      ...clients.operatorKeys.filter(isIn).map((line) => ({ line, client: keyClient(line.name), isKept: false })),
      ...clients.personLines
        .filter((line) => isIn(line) && isPerson(line.name))
        .map((line) => ({ line, client: ssoClient(line.name), isKept: false })),
      ...keys.all
        .filter((key) => isIn(key) && isOfNobody(key))
        .map((line) => ({ line, client: clientOf(line), isKept: isKeptBy(line, line.group ?? '') })),
    ];
  }

  /** Returns the own limits of a member. `each`: limits that are above them. */
  #limitTexts(options: KeyOptions, each: Partial<KeyOptions>): string[] {
    const { keyOptions } = this.#parts;
    const ownTexts = keyOptions.textsOf(options);
    const names = memberOptions.filter((name) => ownTexts[name] !== undefined);
    if (names.length === 0) return [];
    const texts = keyOptions.textsOf(keyOptions.bounded(options, each));
    return names.map((name) => `${name}=${texts[name]}`);
  }

  /** Returns the usage of each key and each person, with the usage of its sub-clients and own keys. */
  async #readUsage(): Promise<ReadonlyMap<string, Used>> {
    const rows = await this.#parts.usage.report(null, { since: null, until: null, groups: ['client'] });
    const usage = new Map<string, Used>();
    for (const row of rows) {
      const holder = holderOf(writeClientId({ kind: row.kind ?? 'other', name: row.client ?? '' }));
      usage.set(holder, sumOf(usage.get(holder) ?? unused, usedIn(row)));
    }
    return usage;
  }
}

/** Returns the options that a group and the groups around it set for each member: the first line counts. */
function eachOf(chain: readonly GroupLine[]): Partial<KeyOptions> {
  const lines = chain.toReversed().map(({ each = {} }) => each);
  const featureOptions = Object.assign({}, ...lines.map((each) => each.featureOptions));
  return Object.assign({}, ...lines, { featureOptions });
}

/** Whether a line makes its group a course. */
function isCourse({ name, expiresAt = null }: GroupLine): boolean {
  return courseName.test(name) && expiresAt !== null;
}

/** Returns the clients that each person has had. */
function clientsByName(members: readonly KnownMember[]): ReadonlyMap<string, readonly ClientText[]> {
  const clients = new Map<string, ClientText[]>();
  for (const { name, client } of members) {
    const known = clients.get(name) ?? [];
    known.push(client);
    clients.set(name, known);
  }
  return clients;
}

function noMember(): RelayError {
  return new RelayError('not_found', 'no such member');
}

/** Whether a key was added to the course over HTTP. An administrator may have given it another group since. */
function isKeptBy({ owner, group }: MadeKey, course: string): boolean {
  return owner === `@${course}` && group === course;
}

/** Whether a key counts for itself. The usage of the own keys of a person is that of the person. */
function isOfNobody(key: MadeKey): boolean {
  return holderOf(key.client) === key.client;
}

function usedIn(row: UsageRow): Used {
  const { all, failed } = jobCounts(row);
  return { jobs: all, failed, tokens: row.tokens.input + row.tokens.output, cost_usd: figureIn(row, 'costUsd') ?? 0 };
}

function sumOf(one: Used, other: Used): Used {
  return {
    jobs: one.jobs + other.jobs,
    failed: one.failed + other.failed,
    tokens: one.tokens + other.tokens,
    cost_usd: one.cost_usd + other.cost_usd,
  };
}

import { digestOf, type KeyOptions } from '../../shared/config/api-keys.js';
import type { OptionTable } from '../../shared/config/key-options.js';
import { type KeysFileContent, readKeysFile } from '../../shared/config/keys-file.js';
import { keyNameOf, type RosterPerson } from './roster.js';
import { adminName } from './shared.js';

/** Texts of each option of a group. A group has an option `each` for each limit of its members. */
export type GroupTexts = Readonly<Record<string, readonly string[]>>;

/** Changes of a keys file that a course needs. */
export interface CourseOrder {
  readonly course: string;
  /** Options of the line of the group. Those that are not named stay. */
  readonly options: GroupTexts;
  readonly people: readonly RosterPerson[];
  /** Whether a proxy signs the people on, so that they need no keys. */
  readonly isSignOn: boolean;
  /** Whether to remove the members who are not on the roster. */
  readonly removesOthers: boolean;
}

/** Member of a course in a keys file. */
export interface CourseMember {
  /** Name of the key, or of the person whom a proxy signs on. */
  readonly id: string;
  readonly isKey: boolean;
}

interface RosterMember extends CourseMember {
  readonly person: RosterPerson;
}

/** Text of a keys file with a new or changed course. */
export interface CourseEdit {
  readonly text: string;
  readonly isNew: boolean;
  readonly added: readonly RosterMember[];
  readonly staying: readonly CourseMember[];
  /** Members who are not on the roster. */
  readonly absent: readonly CourseMember[];
}

/** Edit of a course that would do harm. Each fault is a sentence. */
export class CourseFault extends Error {
  override readonly name = 'CourseFault';
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(faults.join('\n'));
    this.faults = faults;
  }
}

/** Returns a keys file with a new or changed course. `keyFor`: returns the key for a name. Throws a CourseFault. */
export function withCourse(
  text: string,
  order: CourseOrder,
  table: OptionTable,
  keyFor: (name: string) => string,
): CourseEdit {
  const { course, options, people, isSignOn, removesOthers } = order;
  const file = readKeysFile(text, table);
  const isNew = groupWords(text, course) === null;
  checkGroup(text, order, file);
  const members = membersIn(file, course);
  const wanted = people.map(
    (person): RosterMember => ({
      person,
      id: isSignOn ? person.login : keyNameOf(course, person.login),
      isKey: !isSignOn,
    }),
  );
  const [known, listed] = [new Set(members.map(idOf)), new Set(wanted.map(idOf))];
  const added = wanted.filter((member) => !known.has(idOf(member)));
  checkNames(wanted, added, file);
  const absent = members.filter((member) => !listed.has(idOf(member)));
  const lines = added.map(({ id, isKey }) =>
    isKey ? `${id}:sha256:${digestOf(keyFor(id))}:group=${course}` : `sso:${id}:group=${course}`,
  );
  const changed = withGroupOptions(removesOthers ? withoutMembers(text, absent) : text, course, options);
  const staying = members.filter((member) => listed.has(idOf(member)));
  return { text: withLines(changed, lines), isNew, added, staying, absent };
}

/** Returns a keys file in which a course ends on a day: its members are refused from then on. Throws a CourseFault. */
export function withCourseEnd(text: string, course: string, day: string): string {
  return withGroupOptions(text, course, { expires: [day] });
}

/**
 * Returns a keys file without a course and its members. The line of the group stays, with the end, while other keys or
 * people have the group, because without it they would have no end.
 */
export function withoutCourse(text: string, course: string, table: OptionTable): string {
  const remaining = withoutMembers(text, membersIn(readKeysFile(text, table), course));
  if (usersOf(readKeysFile(remaining, table), course).length > 0) return remaining;
  return remaining
    .split('\n')
    .filter((line) => groupIn(line) !== course)
    .join('\n');
}

/**
 * Returns the members of a course in a keys file: its keys, whose names begin with that of the course, and its people.
 * Its teachers are no members.
 */
export function membersIn({ keys, personLines }: KeysFileContent, course: string): CourseMember[] {
  const isIn = ({ group, featureOptions }: KeyOptions) => group === course && featureOptions[adminName] === undefined;
  const isPerson = (name: string) => name !== '*' && !name.startsWith('group:');
  return [
    ...keys
      .filter((key) => isIn(key) && key.name.startsWith(`${course}-`))
      .map(({ name: id }) => ({ id, isKey: true })),
    ...personLines.filter((line) => isIn(line) && isPerson(line.name)).map(({ name: id }) => ({ id, isKey: false })),
  ];
}

/** Returns the names of the keys and of the lines for people with a group, also of those that are no members. */
export function usersOf({ keys, personLines, groupLines }: KeysFileContent, group: string): string[] {
  return [
    ...keys.filter((key) => key.group === group).map(({ name }) => name),
    ...personLines.filter((line) => line.group === group).map(({ name }) => `sso:${name}`),
    ...groupLines.filter((line) => line.outer === group).map(({ name }) => `@${name}`),
  ];
}

/** Returns the last day of a course, from which it is refused; null if the file has no such course. */
export function courseEnd(text: string, course: string): string | null {
  const words = groupWords(text, course)?.filter((word) => nameIn(word) === 'expires') ?? [];
  return words[0]?.slice('expires='.length) ?? null;
}

/** Returns the words after the name of a group in its line; null without such a line. */
function groupWords(text: string, group: string): string[] | null {
  const line = text.split('\n').find((each) => groupIn(each) === group);
  return line === undefined ? null : wordsIn(line);
}

function idOf({ id, isKey }: CourseMember): string {
  return `${isKey ? 'key' : 'sso'} ${id}`;
}

/** Throws if the name belongs to another group, or a new course has no end. */
function checkGroup(text: string, { course, options }: CourseOrder, { keys, personLines }: KeysFileContent): void {
  if (courseEnd(text, course) !== null) return;
  if (groupWords(text, course) !== null)
    throw new CourseFault([`@${course} is a group without an end, and no course: choose another name`]);
  if ([...keys, ...personLines].some(({ group }) => group === course))
    throw new CourseFault([`a key or a person already has the group ${course}: choose another name`]);
  if (options.expires === undefined) throw new CourseFault(['a new course needs --until, such as --until 2027-07-15']);
}

/** Throws if a name in a roster stands for two people, or a new one is in use outside of the course. */
function checkNames(wanted: readonly RosterMember[], added: readonly RosterMember[], file: KeysFileContent): void {
  const used = new Set([
    ...file.keys.map(({ name: id }) => idOf({ id, isKey: true })),
    ...file.personLines.map(({ name: id }) => idOf({ id, isKey: false })),
  ]);
  const lines = new Map<string, number>();
  const twice = wanted.flatMap(({ id, person: { line } }) => {
    const first = lines.get(id);
    lines.set(id, first ?? line);
    return first === undefined ? [] : [`line ${line}: the name ${id} already stands for line ${first}`];
  });
  const taken = added
    .filter((member) => used.has(idOf(member)))
    .map(({ id, isKey, person: { line } }) => {
      const owner = isKey ? `a key with the name ${id}` : `a line sso:${id}`;
      return `line ${line}: the keys file already has ${owner}, which is not in this course`;
    });
  if (twice.length + taken.length > 0) throw new CourseFault([...twice, ...taken]);
}

function withoutMembers(text: string, members: readonly CourseMember[]): string {
  const removed = new Set(members.map(idOf));
  const isKept = (line: string) => {
    const [, first = '', second = ''] = /^\uFEFF?\s*([^\s:#]+):([^\s:]+)/.exec(line) ?? [];
    if (second === 'sha256') return !removed.has(idOf({ id: first, isKey: true }));
    return first !== 'sso' || !removed.has(idOf({ id: second, isKey: false }));
  };
  return text.split('\n').filter(isKept).join('\n');
}

/** Returns a keys file in which the line of a group has these options; the others stay. */
function withGroupOptions(text: string, group: string, options: GroupTexts): string {
  const lines = text.split('\n');
  const at = lines.findIndex((line) => groupIn(line) === group);
  const words = at < 0 ? [] : wordsIn(lines[at] ?? '');
  const otherWords = words.filter((word) => !Object.hasOwn(options, nameIn(word)));
  const changed = Object.entries(options).flatMap(([name, texts]) => texts.map((each) => `${name}=${each}`));
  const all = [...otherWords, ...changed];
  const line = `@${group} ${all.join(' ')}`;
  return at < 0 ? withLines(text, [line]) : lines.with(at, line).join('\n');
}

function withLines(text: string, lines: readonly string[]): string {
  const end = text === '' || text.endsWith('\n') ? '' : '\n';
  return `${text}${end}${lines.map((line) => `${line}\n`).join('')}`;
}

/** Returns the group whose line this is; null for another line. */
function groupIn(line: string): string | null {
  return /^\uFEFF?@(\S+)/.exec(line)?.[1] ?? null;
}

function wordsIn(line: string): string[] {
  const [, text = ''] = /^\uFEFF?@\S+\s*(.*)$/.exec(line.trimEnd()) ?? [];
  return text.split(/[\s,]+/).filter((word) => word !== '');
}

function nameIn(word: string): string {
  return word.split('=', 1)[0] ?? '';
}

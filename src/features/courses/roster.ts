import { createHash } from 'node:crypto';
import { keyNamePattern } from '../../shared/config/key-values.js';
import { personName } from '../../shared/config/people.js';
import { formatNumber } from '../../shared/text/format.js';
import { escaped } from '../../shared/text/paint.js';
import { type CsvRow, type LineFault, readCsv } from './csv.js';

/** Person of a roster. */
export interface RosterPerson {
  /** Line of the roster. */
  readonly line: number;
  /** Login or e-mail address: one spelling for each person, in small letters. */
  readonly login: string;
  /** Name for people; empty if the roster has none. */
  readonly name: string;
}

export interface Roster {
  readonly people: readonly RosterPerson[];
  /** Sentences about all lines with a fault, each with its number. */
  readonly faults: readonly string[];
}

/** Largest roster in bytes, and in people. */
const maxBytes = 4 * 1024 * 1024;
const maxPeople = 10_000;

/** Parses a roster in CSV. The result has all faults; nobody may use the people of a roster with a fault. */
export function readRoster(bytes: Uint8Array): Roster {
  if (bytes.length > maxBytes) return broken(`the roster is larger than ${maxBytes / 1024 / 1024} MB`);
  const isUtf16 = (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff);
  if (isUtf16) return broken('the roster is in UTF-16: save it as CSV in UTF-8');
  const text = new TextDecoder().decode(bytes);
  const { rows, faults } = readCsv(text);
  const columns = columnsOf(rows[0]);
  if (typeof columns === 'string') return broken(`line ${rows[0]?.line}: ${columns}`);
  const found = new People(columns);
  for (const row of columns.hasHeader ? rows.slice(1) : rows) found.addRow(row);
  const all = [...faults, ...found.faults].toSorted((one, other) => one.line - other.line);
  if (all.length === 0 && found.people.length === 0) return broken('the roster names nobody');
  if (found.people.length > maxPeople)
    return broken(`the roster has more than ${formatNumber(maxPeople)} people: make several courses`);
  return { people: found.people, faults: all.map(({ line, message }) => `line ${line}: ${message}`) };
}

function broken(fault: string): Roster {
  return { people: [], faults: [fault] };
}

/** Columns of a roster by their numbers. */
interface Columns {
  readonly hasHeader: boolean;
  /** Number of cells of the header; null without a header. */
  readonly width: number | null;
  readonly login: number;
  /** Columns with parts of the name, in the order of the name. */
  readonly names: readonly number[];
}

const words = {
  login: 'login loginname user username userid uid account accountname benutzername benutzerkennung kennung nutzername',
  email: 'email emailaddress mail mailaddress emailadresse mailadresse',
  name: 'name fullname displayname vollständigername',
  first: 'firstname forename givenname vorname',
  last: 'lastname surname familyname nachname familienname',
} as const;

/** Returns the columns that a first row names; without a header, those that its cells look like. */
function columnsOf(row: CsvRow | undefined): Columns | string {
  const cells = row?.cells ?? [];
  const titles = cells.map((cell) =>
    cell
      .normalize('NFKC')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}]/gu, ''),
  );
  const columnOf = (kind: keyof typeof words) => titles.findIndex((title) => words[kind].split(' ').includes(title));
  const [login = -1] = [columnOf('login'), columnOf('email')].filter((column) => column >= 0);
  const full = columnOf('name');
  const names = (full >= 0 ? [full] : [columnOf('first'), columnOf('last')]).filter((column) => column >= 0);
  if (login >= 0) return { hasHeader: true, width: cells.length, login, names };
  const isHeader = names.length > 0 && cells.length > 1 && !cells.some((cell) => cell.includes('@'));
  if (isHeader) return 'the header names no column with the logins or e-mail addresses: call it login or email';
  const address = Math.max(
    0,
    cells.findIndex((cell) => cell.includes('@')),
  );
  const otherColumns = cells.map((_, index) => index).filter((index) => index !== address);
  return { hasHeader: false, width: null, login: address, names: otherColumns.slice(0, 1) };
}

/** Owns the people and the faults that the rows have had so far. */
class People {
  readonly people: RosterPerson[] = [];
  readonly faults: LineFault[] = [];
  readonly #columns: Columns;
  readonly #lines = new Map<string, number>();

  constructor(columns: Columns) {
    this.#columns = columns;
  }

  addRow({ line, cells }: CsvRow): void {
    const { login: column, names, width } = this.#columns;
    const login = spelling(cells[column] ?? '');
    const name = names
      .map((each) => cells[each] ?? '')
      .join(' ')
      .trim()
      .normalize('NFC');
    const earlier = this.#lines.get(login);
    const isTooLong = width !== null && cells.slice(width).some((cell) => cell !== '');
    const fault =
      (isTooLong ? `has ${cells.length} cells, and the header has ${width}` : null) ??
      rowFault(login, cells.join('')) ??
      (earlier === undefined ? null : `${shown(login)} is already in line ${earlier}`);
    if (login !== '' && earlier === undefined) this.#lines.set(login, line);
    if (fault === null) this.people.push({ line, login, name });
    else this.faults.push({ line, message: fault });
  }
}

/** Returns the one spelling of a login: without blanks at its ends, in small letters, and with composed characters. */
export function spelling(login: string): string {
  return login.normalize('NFKC').trim().toLowerCase().normalize('NFC');
}

/** Returns what is wrong with a row; null if nothing is. */
function rowFault(login: string, row: string): string | null {
  if (row.includes('\ufffd')) return 'is not in UTF-8: save the roster as CSV in UTF-8';
  return /\p{Cc}/u.test(row) ? 'has an invisible character' : loginFault(login);
}

/** Returns what is wrong with a login; null if nothing is. */
export function loginFault(login: string): string | null {
  if (/[\p{Cc}\p{Cf}\p{Co}]/u.test(login)) return 'has an invisible character';
  if (login === '') return 'has no login';
  if (login.length > 120) return 'the login has more than 120 characters';
  if (/\s/.test(login)) return `the login ${shown(login)} contains a blank`;
  if (!/^[\p{L}\p{N}][\p{L}\p{M}\p{N}._@+'-]*$/u.test(login))
    return `the login ${shown(login)} must begin with a letter or a digit, and have only these and . _ @ + ' -`;
  return (login.match(/@/g)?.length ?? 0) > 1 ? `the login ${shown(login)} has two @` : null;
}

/** Returns a login in a form for messages. */
function shown(login: string): string {
  return escaped(login.length > 40 ? `${login.slice(0, 40)}…` : login);
}

/** Name of a course. It is short, because the names of its keys begin with it. */
export const courseName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$/;

/**
 * Returns the name of the key of a person: the course and the login. A login that cannot be part of a name is replaced by
 * letters that look like it and a part of its digest, so that a person has the same name in each version of a roster.
 */
export function keyNameOf(course: string, login: string): string {
  const plain = `${course}-${login}`;
  if (keyNamePattern.test(plain) && plain.length <= 64 && !/-[0-9a-f]{10}$/.test(login)) return plain;
  const digest = createHash('sha256').update(login).digest('hex').slice(0, 10);
  return `${course}-${latin(login.replace(/@.*/, '')).slice(0, 20)}-${digest}`;
}

const german: Readonly<Record<string, string>> = { ä: 'ae', ö: 'oe', ü: 'ue', ß: 'ss', æ: 'ae', ø: 'o', ł: 'l' };

function latin(text: string): string {
  const letters = text.replace(/[äöüßæøł]/g, (letter) => german[letter] ?? '').normalize('NFKD');
  return letters.replace(/\p{M}/gu, '').replace(/[^a-z0-9._-]/g, '_');
}

/** Returns faults of people who cannot be signed on by a proxy under their login. */
export function signOnFaults(people: readonly RosterPerson[]): string[] {
  return people
    .filter(({ login }) => !personName.test(login))
    .map(
      ({ line, login }) =>
        `line ${line}: a proxy cannot sign on ${shown(login)}: names of people have small letters, digits and . _ @ + -`,
    );
}

import {
  type ApiKey,
  digestOf,
  digestsOf,
  type GroupLine,
  type KeyOptions,
  type PersonLine,
  plainOptions,
  refusedOptions,
} from './api-keys.js';
import { GroupLines } from './group-lines.js';
import type { OptionTable } from './key-options.js';
import { digestPattern, keyNamePattern, nameForm } from './key-values.js';
import { groupName, personName } from './people.js';

/**
 * Keys, lines of groups and lines for people of a keys file in their order, and all faults of the file, each with the
 * number of its line. A line with a fault never allows more than a right one: its key and its people are refused, and
 * its group is closed.
 */
export interface KeysFileContent {
  readonly keys: readonly ApiKey[];
  readonly groupLines: readonly GroupLine[];
  readonly personLines: readonly PersonLine[];
  /** Faults, which never contain a digest or text that may be a key. */
  readonly faults: readonly string[];
}

/**
 * Parses keys, one per line: `name:sha256:<hex>`, then optionally a colon and options separated by commas. A line for
 * people begins with `sso:*`, `sso:group:<group>` or `sso:<person>` instead. A line that begins with `@` and the name of
 * a group, or with `@*`, has options that the group or all clients share. Blank lines and lines that begin with `#` are ignored. `otherKeys` are keys
 * from other sources: names and keys must be unique.
 */
export function readKeysFile(text: string, table: OptionTable, otherKeys: readonly ApiKey[] = []): KeysFileContent {
  const reading = keysFileReader(text, table, otherKeys);
  for (;;) {
    const { done, value } = reading.next();
    if (done) return value;
  }
}

/** Number of lines between two pauses. */
const sliceLines = 250;

/** Parses keys like `readKeysFile`, and awaits `pause` after each slice of lines. */
export async function readKeysFileInSlices(
  text: string,
  table: OptionTable,
  otherKeys: readonly ApiKey[],
  pause: () => Promise<void>,
): Promise<KeysFileContent> {
  const reading = keysFileReader(text, table, otherKeys);
  for (let lines = 1; ; lines++) {
    const { done, value } = reading.next();
    if (done) return value;
    if (lines % sliceLines === 0) await pause();
  }
}

/** Parses keys, and yields once for each line. */
function* keysFileReader(
  text: string,
  table: OptionTable,
  others: readonly ApiKey[],
): Generator<void, KeysFileContent, void> {
  const lines = new LinesRead(table, others);
  for (const line of text.replace(/^\uFEFF/, '').split('\n')) {
    lines.addLine(line);
    yield;
  }
  return lines.content();
}

/** Owns what the lines of a keys file have said so far. */
class LinesRead {
  readonly #keys = new Map<string, ApiKey>();
  readonly #groupLines = new Map<string, GroupLine>();
  readonly #groupNumbers = new Map<string, number>();
  readonly #personLines = new Map<string, PersonLine>();
  readonly #faults: string[] = [];
  readonly #taken: TakenKeys;
  /** Lines for people, and lines of groups, whose name has a fault. */
  readonly #nameless: string[] = [];
  #number = 0;
  readonly #table: OptionTable;

  constructor(table: OptionTable, others: readonly ApiKey[]) {
    this.#table = table;
    this.#taken = new TakenKeys(others);
  }

  addLine(line: string): void {
    this.#number++;
    if (/^\s*(#|$)/.test(line)) return;
    try {
      this.#read(line.trimEnd());
    } catch (error) {
      this.#faults.push(`line ${this.#number}: ${(error as Error).message}`);
      this.#refuse(line.trim());
    }
  }

  content(): KeysFileContent {
    this.#refuseNameless();
    this.#refuseWrongOuterGroups();
    return {
      keys: [...this.#keys.values()],
      groupLines: [...this.#groupLines.values()],
      personLines: [...this.#personLines.values()],
      faults: this.#faults,
    };
  }

  #read(line: string): void {
    if (line.startsWith('@')) {
      const read = readGroupLine(line, this.#table);
      if (this.#groupLines.has(read.name)) throw new Error(`another line already begins with @${read.name}`);
      this.#groupLines.set(read.name, read);
      this.#groupNumbers.set(read.name, this.#number);
    } else if (isForPeople(line)) {
      const read = readPersonLine(line, this.#table);
      if (this.#personLines.has(read.name)) throw new Error(`another line already begins with sso:${read.name}`);
      this.#personLines.set(read.name, read);
    } else {
      const key = readKey(line, this.#table);
      this.#taken.addUnique(key);
      this.#keys.set(key.name, key);
    }
  }

  /** Refuses the key, the people or the group of a line with a fault. Of two lines with one name, the first counts. */
  #refuse(line: string): void {
    if (line.startsWith('@')) {
      const { name, options } = groupWords(line);
      if (isGroupName(name)) this.#closeGroup(name);
      if (!isGroupName(name) || options === '') this.#nameless.push(line);
    } else if (/^sso\b(?!:sha256:)/i.test(line)) {
      const { name, fault } = personWords(line);
      if (fault === null) this.#refusePeople(name);
      else this.#nameless.push(line);
    } else {
      const key = refusedKeyIn(line, this.#taken);
      if (key !== null && this.#taken.addRefused(key)) this.#keys.set(key.name, key);
    }
  }

  /** Refuses each person and each group that a line without a readable name may be about. */
  #refuseNameless(): void {
    for (const line of this.#nameless) {
      const words = line
        .replace(/^@/, '')
        .split(/[\s,;=:]+/)
        .filter((word) => groupName.test(word));
      if (line.startsWith('@')) for (const word of words) this.#closeGroup(word);
      else for (const word of words.slice(1)) for (const name of peopleCalled(word)) this.#refusePeople(name);
    }
  }

  /** Closes each group that is in itself, or in too many groups. */
  #refuseWrongOuterGroups(): void {
    const groups = new GroupLines([...this.#groupLines.values()]);
    const faults = [...this.#groupNumbers].flatMap(([name, number]) => {
      const fault = groups.outerFault(name);
      return fault === null ? [] : [{ name, text: `line ${number}: ${fault}` }];
    });
    for (const { name, text } of faults) {
      this.#faults.push(text);
      this.#groupLines.set(name, closedLine(name));
    }
  }

  #closeGroup(name: string): void {
    if (!this.#groupLines.has(name)) this.#groupLines.set(name, closedLine(name));
  }

  #refusePeople(name: string): void {
    if (!this.#personLines.has(name)) this.#personLines.set(name, { name, ...refusedOptions });
  }
}

function peopleCalled(word: string): string[] {
  const person = word.toLowerCase();
  return [...(person === '*' || personName.test(person) ? [person] : []), `group:${word}`];
}

/**
 * Returns the key of a line with a fault, which is refused; null if the line has no name of a key. Its digest is empty
 * if it has none of its own.
 */
function refusedKeyIn(line: string, taken: TakenKeys): ApiKey | null {
  const [name = '', method, text = ''] = line.split(':');
  if (method !== 'sha256' || !keyNamePattern.test(name)) return null;
  const digest = text.toLowerCase();
  const isOwn = digestPattern.test(digest) && !taken.hasDigest(digest);
  return { name, digest: isOwn ? digest : '', ...refusedOptions };
}

/** Owns the names and digests of keys that earlier lines of the file have taken. */
class TakenKeys {
  readonly #names = new Set<string>();
  readonly #namesByDigest = new Map<string, string>();

  constructor(keys: readonly ApiKey[]) {
    for (const key of keys) this.#add(key);
  }

  /** Adds a key. Throws if another key has its name or its digest. */
  addUnique(key: ApiKey): void {
    const { name, digest } = key;
    if (this.#names.has(name)) throw new Error(`another key already has the name ${name}`);
    if (key.previous?.digest === digest) throw new Error(`${name} has the same key before and after its rotation`);
    const twins = digestsOf(key).flatMap((each) => this.#namesByDigest.get(each) ?? []);
    if (twins[0] !== undefined)
      throw new Error(`${name} has the same key as ${twins[0]}: each name needs a different key`);
    this.#add(key);
  }

  /** Adds the key of a line with a fault, unless another key has its name. Returns whether it did. */
  addRefused(key: ApiKey): boolean {
    if (this.#names.has(key.name)) return false;
    this.#add(key);
    return true;
  }

  /** Whether a key has this digest. */
  hasDigest(digest: string): boolean {
    return this.#namesByDigest.has(digest);
  }

  #add(key: ApiKey): void {
    this.#names.add(key.name);
    for (const digest of digestsOf(key)) this.#namesByDigest.set(digest, key.name);
  }
}

const emptyDigest = digestOf('');

function readKey(line: string, table: OptionTable): ApiKey {
  const [name = '', method, digest = '', ...rest] = line.split(':');
  if (method !== 'sha256') throw new Error('must begin with name:sha256:');
  if (!keyNamePattern.test(name)) throw new Error(`the name ${nameForm}`);
  if (!digestPattern.test(digest)) throw new Error('after sha256: there must be 64 hexadecimal digits');
  if (digest.toLowerCase() === emptyDigest) throw new Error('this is the digest of an empty key');
  // The name of a model may contain colons.
  const options = rest.length > 0 ? table.readKeyLine(rest.join(':')) : plainOptions;
  return { name, digest: digest.toLowerCase(), ...options };
}

/** Whether a line is for people. A key may have the name `sso`. */
function isForPeople(line: string): boolean {
  return line.startsWith('sso:') && !line.startsWith('sso:sha256:');
}

function readPersonLine(line: string, table: OptionTable): PersonLine {
  const { name, rest, fault } = personWords(line);
  if (fault !== null) throw new Error(fault);
  const options = rest.length > 0 ? table.readLine(rest.join(':')) : plainOptions;
  if (options.hasSubclients || options.previous !== null)
    throw new Error('the options subclients and previous are only for keys');
  return { name, ...options };
}

/** Splits a line for people into its name and the rest. `fault`: what is wrong with the name; null if nothing is. */
function personWords(line: string): { name: string; rest: string[]; fault: string | null } {
  const [, first = '', ...others] = line.split(':');
  if (first !== 'group') {
    const isName = first === '*' || personName.test(first);
    return { name: first, rest: others, fault: isName ? null : wrongPerson };
  }
  const [group = '', ...rest] = others;
  const isName = groupName.test(group) && !/[,=]/.test(group);
  return { name: `group:${group}`, rest, fault: isName ? null : wrongGroup };
}

const wrongGroup = 'after sso:group: there must be the name of a group in printable ASCII without : , and =';
const wrongPerson =
  'after sso: there must be *, group: and a group, or a person of 1 to 120 small letters, digits and . _ @ + -';

/** Parses a line such as `@biology tokens=1000000/day,cost=200/month`. */
function readGroupLine(line: string, table: OptionTable): GroupLine {
  const { name, options } = groupWords(line);
  if (!isGroupName(name))
    throw new Error('after @ there must be * or the name of a group, in printable ASCII without blanks and commas');
  return table.readGroupLine(name, options === '' ? [] : options.split(/[\s,]+/));
}

function groupWords(line: string): { name: string; options: string } {
  const [, name = '', options = ''] = /^@(\S*)\s*(.*)$/.exec(line) ?? [];
  return { name, options };
}

function isGroupName(name: string): boolean {
  return groupName.test(name) && !name.includes(',');
}

/** Content of the keys file in the configuration. */
export interface ConfiguredLines {
  readonly namedKeys: readonly ApiKey[];
  readonly groupLines: readonly GroupLine[];
  readonly personLines: readonly PersonLine[];
  readonly keysFileFaults: readonly string[];
  readonly keyOptions: OptionTable;
}

/** Returns the lines of the configuration that the service can obey. `reportsCosts`: whether each model CLI does. */
export function applicableLines(
  { namedKeys: keys, groupLines, personLines, keysFileFaults: faults, keyOptions }: ConfiguredLines,
  reportsCosts: boolean,
): KeysFileContent {
  const content = { keys, groupLines, personLines, faults };
  return reportsCosts ? content : refuseCosts(content, keyOptions);
}

/**
 * Refuses each line with an option that needs the costs of jobs, because such an option limits nobody if a model CLI does
 * not report what a job costs.
 */
export function refuseCosts(content: KeysFileContent, table: OptionTable): KeysFileContent {
  const { keys, groupLines, personLines, faults } = content;
  const costOption = ({ featureOptions, each }: Pick<KeyOptions, 'featureOptions'> & Pick<GroupLine, 'each'>) =>
    table.costOptionIn({ featureOptions: { ...each?.featureOptions, ...featureOptions } });
  const faultOf = (subject: string, line: Parameters<typeof costOption>[0]): string[] => {
    const option = costOption(line);
    const fault = `${subject} has the option ${option}, but not each model CLI reports what a job costs`;
    return option === null ? [] : [fault];
  };
  return {
    keys: keys.map((key) =>
      costOption(key) === null ? key : { name: key.name, digest: key.digest, ...refusedOptions },
    ),
    groupLines: groupLines.map((line) => (costOption(line) === null ? line : closedLine(line.name))),
    personLines: personLines.map((line) => (costOption(line) === null ? line : { name: line.name, ...refusedOptions })),
    faults: [
      ...faults,
      ...keys.flatMap((key) => faultOf(`the key ${key.name}`, key)),
      ...personLines.flatMap((line) => faultOf(`the line sso:${line.name}`, line)),
      ...groupLines.flatMap((line) => faultOf(`the line @${line.name}`, line)),
    ],
  };
}

function closedLine(name: string): GroupLine {
  return { name, featureOptions: {}, isClosed: true };
}

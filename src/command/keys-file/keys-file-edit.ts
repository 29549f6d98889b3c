import { randomBytes } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { type FileHandle, open, realpath, rename, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { type Clock, delay } from '../../shared/clock.js';
import { digestOf, isTooShort, minKeyLength, readApiKeys, readClearKeys } from '../../shared/config/api-keys.js';
import { readKeysFile } from '../../shared/config/keys-file.js';
import { fileFault, meaningOf } from '../../shared/text/system-error.js';
import { CommandError, exitCodes } from '../base/errors.js';
import { lockFor } from '../base/file-lock.js';
import { keyOptions } from './key-options.js';

/**
 * Limit of attempts to lock the file. Other commands have the lock for milliseconds, but any local user can bind its
 * name: an edit must not wait forever.
 */
const lockTries = 100;
const betweenTriesMs = 50;
/** Limit of restarts of an edit because another program has changed the file. */
const maxEdits = 5;

/** Kind of file whose lines a command edits. */
export interface LineFile {
  /** Name of the command, for its messages. */
  readonly command: string;
  /** Mode of a new file. */
  readonly mode: number;
  faultsOf(text: string): readonly string[];
}

const keysFile: LineFile = { command: 'keys', mode: 0o600, faultsOf: (text) => readKeysFile(text, keyOptions).faults };

/** Edits a keys file, see `editLines`. */
export function editKeysFile(
  path: string,
  clock: Clock,
  mayMake: boolean,
  edit: (text: string) => string,
): Promise<readonly string[]> {
  return editLines(keysFile, path, clock, mayMake, edit);
}

/**
 * Atomically replaces the text of a file by the result of `edit`, and preserves its owner, group and mode.
 * Serializes the edits of several commands. Follows a symbolic link. Throws a CommandError and changes nothing if the
 * edit adds a fault. If `mayMake` is true, a missing file is created. Resolves with the faults of other lines, which
 * do not stop the edit: a key can be revoked whatever another line contains.
 */
export async function editLines(
  kind: LineFile,
  path: string,
  clock: Clock,
  mayMake: boolean,
  edit: (text: string) => string,
): Promise<readonly string[]> {
  const { command } = kind;
  try {
    const place = await realpath(path).catch((error: NodeJS.ErrnoException) => {
      if (mayMake && error.code === 'ENOENT') return resolve(path);
      throw error;
    });
    using _ = await lockSoon(command, place, clock);
    for (let edits = 0; edits < maxEdits; edits++) {
      const faults = await replace(kind, place, mayMake, edit);
      if (faults !== null) return faults;
    }
  } catch (error) {
    throw error instanceof CommandError ? error : refused(command, fileFault(path, error as NodeJS.ErrnoException));
  }
  throw new CommandError(exitCodes.tryLater, `${command}: another program keeps changing ${path}: try again`);
}

async function lockSoon(command: string, path: string, clock: Clock): Promise<Disposable | null> {
  for (let tries = 1; ; tries++) {
    const lock = await lockFor(command, path);
    if (lock !== null || tries === lockTries) return lock; // `replace` still notices most changes without a lock
    await delay(clock, betweenTriesMs);
  }
}

/** Resolves with the faults of other lines; with null if another program has changed the file. */
async function replace(
  kind: LineFile,
  path: string,
  mayMake: boolean,
  edit: (text: string) => string,
): Promise<readonly string[] | null> {
  const { command } = kind;
  const before = await readBefore(command, path, mayMake);
  const edited = edit(before.text);
  const faults = checkedFaults(kind, before.text, edited);
  const draft = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}`);
  try {
    await write(kind, draft, edited, before.stats);
    if (looksOf(await statOf(path)) !== looksOf(before.stats)) return null;
    await rename(draft, path);
  } finally {
    await unlink(draft).catch(() => {});
  }
  await sync(dirname(path));
  return faults;
}

interface Before {
  readonly text: string;
  /** Stats of the file; null if it does not exist. */
  readonly stats: Stats | null;
}

async function readBefore(command: string, path: string, mayMake: boolean): Promise<Before> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const file = await open(path, flags).catch((error: NodeJS.ErrnoException) => {
    if (mayMake && error.code === 'ENOENT') return null;
    throw error;
  });
  if (file === null) return { text: '', stats: null };
  try {
    const stats = await file.stat();
    if (!stats.isFile()) throw refused(command, `${path} is not a regular file`);
    if (stats.nlink > 1)
      throw refused(command, `${path} has a second name (a hard link), which would keep the old ${command}`);
    return { text: await file.readFile('utf8'), stats };
  } finally {
    await file.close();
  }
}

async function statOf(path: string): Promise<Stats | null> {
  return stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
}

/** Returns a fingerprint that changes with the content, the owner or the mode. */
function looksOf(stats: Stats | null): string {
  return stats === null ? '' : [stats.dev, stats.ino, stats.size, stats.mtimeMs, stats.ctimeMs].join(' ');
}

async function write({ command, mode }: LineFile, draft: string, text: string, like: Stats | null): Promise<void> {
  const file = await open(draft, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
    throw refused(command, `cannot write in the folder ${dirname(draft)}: ${meaningOf(error)}`);
  });
  try {
    if (like === null) await file.chmod(mode);
    else await takeOver(command, file, like);
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function takeOver(command: string, file: FileHandle, { uid, gid, mode }: Stats): Promise<void> {
  const currentStat = await file.stat();
  if (currentStat.uid !== uid || currentStat.gid !== gid)
    await file.chown(uid, gid).catch(() => {
      throw refused(command, 'the file belongs to another user or group: edit it as its owner or as root');
    });
  await file.chmod(mode & 0o7777); // after chown, which clears the set-user-ID and set-group-ID bits
}

async function sync(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  await handle.sync().finally(() => handle.close());
}

/** Returns the faults of the edited text. Throws if the edit has added one. */
function checkedFaults({ command, faultsOf }: LineFile, before: string, edited: string): readonly string[] {
  const faults = faultsOf(edited);
  const known = new Set(faultsOf(before).map(withoutNumbers));
  const added = faults.find((fault) => !known.has(withoutNumbers(fault)));
  if (added !== undefined) throw refused(command, `the file would have a new fault, so it was not changed: ${added}`);
  return faults;
}

/** Removes the numbers of lines from a fault, which an edit may change. */
function withoutNumbers(fault: string): string {
  return fault.replace(/\bline \d+/g, '');
}

function refused(command: string, message: string): CommandError {
  return new CommandError(exitCodes.config, `${command}: ${message}`);
}

export function withLines(text: string, lines: readonly string[]): string {
  const end = text === '' || text.endsWith('\n') ? '' : '\n';
  return `${text}${end}${lines.map((line) => `${line}\n`).join('')}`;
}

/** Throws a CommandError if a key has this name already. */
export function withNewKey(text: string, name: string, line: string): string {
  if (!readKeysFile(text, keyOptions).keys.some((key) => key.name === name)) return withLines(text, [line]);
  throw refused('keys', `the file already has a key of ${name}: "prompt-relay keys rotate ${name}" changes its value`);
}

/** Removes each line of a key, also with a fault. Throws a CommandError if no key has this name. */
export function withoutKey(text: string, name: string): string {
  let rest = withKeyLine(text, name, () => []);
  while (lineOfKey(rest.split('\n'), name) >= 0) rest = withKeyLine(rest, name, () => []);
  return rest;
}

/** Returns the names of other keys with a digest that a removed line of the key had: they work with the same key. */
export function namesWithSameKey(before: string, after: string, name: string): string[] {
  const lines = before.split('\n').filter((line) => isLineOfKey(line, name));
  const digests = lines.flatMap((line) => line.match(/\b[0-9a-f]{64}\b/gi) ?? []).map((digest) => digest.toLowerCase());
  const twins = after.split('\n').filter((line) => digests.some((digest) => line.toLowerCase().includes(digest)));
  return twins.flatMap((line) => /^\s*([^\s:#]+):/.exec(line)?.[1] ?? []);
}

/**
 * Replaces the digest of a key, and preserves its options. If `oldUntil` is set, the old key remains valid up to that
 * day.
 */
export function withDigest(text: string, name: string, digest: string, oldUntil: string | undefined): string {
  return withKeyLine(text, name, (line) => {
    const { begin, digest: old, options, end } = partsOf(line, name);
    const others = options.filter((option) => !option.startsWith('previous='));
    const all = [...others, ...(oldUntil === undefined ? [] : [`previous=${old}/${oldUntil}`])];
    return [lineWith(`${begin}${digest}`, all, end)];
  });
}

/**
 * New values of the options of a budget, such as `100/day`, by their names, such as `cost` or `opus:cost`. Null removes an
 * option; options that are not named stay.
 */
export type BudgetChange = Readonly<Record<string, string | null>>;

/**
 * Changes the budget of a key, or with `@group` and `@*` of a group and of the whole service. A shared budget gets a
 * line if it has none, and loses its line with its last option.
 */
export function withBudget(text: string, subject: string, change: BudgetChange): string {
  if (subject.startsWith('@')) return withSharedBudget(text, subject, change);
  return withKeyLine(text, subject, (line) => {
    const { begin, digest, options, end } = partsOf(line, subject);
    return [lineWith(`${begin}${digest}`, changed(options, change), end)];
  });
}

function withSharedBudget(text: string, subject: string, change: BudgetChange): string {
  const lines = text.split('\n');
  const at = lines.findIndex((line) => line.replace(/^\uFEFF/, '').split(/\s/, 1)[0] === subject);
  const options =
    at < 0
      ? []
      : (lines[at] ?? '')
          .trimEnd()
          .split(/[\s,]+/)
          .slice(1);
  const all = changed(options, change);
  const line = all.length === 0 ? [] : [`${subject} ${all.join(',')}`];
  return at < 0 ? withLines(text, line) : lines.toSpliced(at, 1, ...line).join('\n');
}

function changed(options: readonly string[], change: BudgetChange): string[] {
  const names = Object.keys(change).map((name) => `${name}=`);
  const others = options.filter((option) => !names.some((name) => option.startsWith(name)));
  const added = Object.entries(change).flatMap(([name, value]) => (value === null ? [] : [`${name}=${value}`]));
  return [...others, ...added];
}

/** Splits the line of a key. Throws a CommandError if it has no digest in the right place. */
function partsOf(line: string, name: string) {
  const found = /^(.*?:sha256:)([0-9a-f]{64}):?(.*?)(\s*)$/i.exec(line);
  if (found === null) throw refused('keys', `the line of ${name} has a fault: "prompt-relay keys check" shows it`);
  const [, begin = '', digest = '', options = '', end = ''] = found;
  return { begin, digest, options: options.split(',').filter((option) => option !== ''), end };
}

function lineWith(begin: string, options: readonly string[], end: string): string {
  return `${begin}${options.length > 0 ? ':' : ''}${options.join(',')}${end}`;
}

function lineOfKey(lines: readonly string[], name: string): number {
  return lines.findIndex((line) => isLineOfKey(line, name));
}

function isLineOfKey(line: string, name: string): boolean {
  return (
    line
      .replace(/^\uFEFF/, '')
      .trimStart()
      .startsWith(`${name}:`) && !/^sso:(?!sha256:)/.test(line)
  );
}

function withKeyLine(text: string, name: string, change: (line: string) => readonly string[]): string {
  const lines = text.split('\n');
  const at = lineOfKey(lines, name);
  if (at < 0) throw new CommandError(exitCodes.usage, `keys: the file has no key named ${name}`);
  return lines.toSpliced(at, 1, ...change(lines[at] ?? '')).join('\n');
}

/**
 * Returns the lines of another keys file, or hashes a file with keys in clear text, whose lines get `options`.
 * `options` have the format of a keys file. Throws an error whose message never contains a key.
 */
export function importedLines(text: string, options: readonly string[]): string[] {
  if (!/^\uFEFF?[^\s:#]+:sha256:/m.test(text)) return hashedLines(text, options);
  if (options.length > 0) throw new Error('lines of a keys file already contain their options');
  const [fault] = readKeysFile(text, keyOptions).faults;
  if (fault !== undefined) throw new Error(fault);
  const lines = text.replace(/^\uFEFF/, '').split('\n');
  return lines.map((line) => line.trimEnd()).filter((line) => !/^\s*(#|$)/.test(line));
}

function hashedLines(text: string, options: readonly string[]): string[] {
  const names = readApiKeys(text).map(({ name }) => name);
  return readClearKeys(text).map((key, index) => {
    const name = names[index] ?? '';
    if (isTooShort(key)) throw new Error(`the key of ${name} has fewer than ${minKeyLength} characters`);
    return [name, 'sha256', digestOf(key), ...options].join(':');
  });
}

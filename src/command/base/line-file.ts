import { randomBytes } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { type FileHandle, open, realpath, rename, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { type Clock, delay } from '../../shared/clock.js';
import { fileFault, meaningOf } from '../../shared/text/system-error.js';
import { CommandError, exitCodes } from './errors.js';
import { lockFor } from './file-lock.js';

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

export function refused(command: string, message: string): CommandError {
  return new CommandError(exitCodes.config, `${command}: ${message}`);
}

export function withLines(text: string, lines: readonly string[]): string {
  const end = text === '' || text.endsWith('\n') ? '' : '\n';
  return `${text}${end}${lines.map((line) => `${line}\n`).join('')}`;
}

import { lstat, mkdir, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { PassingFault, StoreFault } from '../../primary/store/contract/store.js';

/** Modes that give access only to the owner: the files contain prompts. */
const fileMode = 0o600;
const folderMode = 0o700;
const writableByOthers = 0o022;
const openToOthers = 0o077;

/**
 * Creates the folder and the file if they are missing; SQLite would create a file that everyone can read. Throws a
 * StoreFault if others can read or change them. After SQLite has opened the file, no other code may: closing any
 * descriptor of it would release the locks of the process.
 */
export async function prepareFile(path: string): Promise<void> {
  await prepareFolder(dirname(path));
  await open(path, 'wx', fileMode).then(
    (file) => file.close(),
    (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw cannot('be created', path, error);
    },
  );
  for (const each of [path, `${path}-wal`]) await checkFile(each);
}

async function prepareFolder(folder: string): Promise<void> {
  await mkdir(folder, folderMode).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw cannot('be created', folder, error);
  });
  await checkFolder(folder);
}

async function checkFolder(folder: string): Promise<void> {
  const { mode, uid } = await stat(folder).catch((error: NodeJS.ErrnoException) => {
    throw cannot('be used', folder, error); // a dangling symbolic link
  });
  if ((mode & writableByOthers) !== 0) throw new StoreFault(`others can write to the folder ${folder}: chmod 700`);
  if (uid !== 0 && uid !== process.getuid?.()) throw new StoreFault(`the folder ${folder} belongs to another user`);
}

/** Resolves with whether the file exists. Throws a StoreFault if others can read it, or if it is not a regular file. */
export async function checkFile(path: string): Promise<boolean> {
  const stats = await lstat(path).catch(() => null);
  if (stats === null) return false;
  if (!stats.isFile()) throw new StoreFault(`${path} is not a file`);
  if (stats.uid !== process.getuid?.()) throw new StoreFault(`${path} belongs to another user`);
  if ((stats.mode & openToOthers) !== 0) throw new StoreFault(`others can read ${path}: chmod 600`);
  return true;
}

/**
 * Error codes that blame the path itself. Other errors may pass, for example when a disk is mounted or has space again.
 */
const codesOfPaths = ['ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'EINVAL'];

function cannot(what: string, path: string, { code = '' }: NodeJS.ErrnoException): StoreFault {
  const Fault = codesOfPaths.includes(code) ? StoreFault : PassingFault;
  return new Fault(`${path} cannot ${what} (${code})`);
}

/** Creates an empty file for a copy. Throws if the file exists. */
export async function makeEmptyFile(path: string): Promise<void> {
  await (await open(path, 'wx', fileMode)).close();
}

/**
 * Returns the path of the file with the id of the process that has the store open. The lock does not contain this id.
 */
function pidFileOf(path: string): string {
  return `${path}.pid`;
}

export async function writePidFile(path: string): Promise<void> {
  await writeFile(pidFileOf(path), `${process.pid}\n`, { mode: fileMode });
}

export async function removePidFile(path: string): Promise<void> {
  await rm(pidFileOf(path), { force: true });
}

/** Describes the process that has the file open, for an error message. */
export async function holderOf(path: string): Promise<string> {
  const text = await readFile(pidFileOf(path), 'utf8').catch(() => '');
  const pid = /^\d+$/.exec(text.trim())?.[0];
  return pid === undefined ? 'another process' : `process ${pid}`;
}

export async function bytesOfFile(path: string): Promise<number> {
  return (await stat(path)).size;
}

/**
 * Lists the faults for which a start would refuse the folder, the file, its write-ahead log, or the copies next to it.
 */
export async function faultsOfFiles(path: string): Promise<string[]> {
  const names = [basename(path), `${basename(path)}-wal`, ...(await copiesBeside(path))];
  const faults = await Promise.all(names.map((name) => faultOf(() => checkFile(join(dirname(path), name)))));
  return [await faultOf(() => checkFolder(dirname(path))), ...faults].filter((fault) => fault !== null);
}

async function faultOf(check: () => Promise<unknown>): Promise<string | null> {
  try {
    await check();
    return null;
  } catch (error) {
    if (error instanceof StoreFault) return error.message;
    throw error;
  }
}

/** First bytes of each SQLite file. */
const magic = 'SQLite format 3\0';

/** Lists other SQLite files in the same folder: backups, and copies made before a change of version. */
export async function copiesBeside(path: string): Promise<string[]> {
  const { ino } = await lstat(path); // hard links are left out too: closing one here would release the lock
  const names = await readdir(dirname(path));
  const found = await Promise.all(names.map((name) => isOtherDatabase(join(dirname(path), name), ino)));
  return names.filter((_, index) => found[index] === true).sort();
}

async function isOtherDatabase(path: string, ino: number): Promise<boolean> {
  const stats = await lstat(path).catch(() => null);
  return stats?.isFile() === true && stats.ino !== ino && (await beginsAsDatabase(path));
}

async function beginsAsDatabase(path: string): Promise<boolean> {
  const file = await open(path, 'r').catch(() => null);
  if (file === null) return false;
  try {
    const { buffer } = await file.read(Buffer.alloc(magic.length), 0, magic.length, 0);
    return buffer.toString('latin1') === magic;
  } finally {
    await file.close();
  }
}

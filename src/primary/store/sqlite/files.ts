import { lstat, mkdir, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { PassingFault, StoreFault } from '../contract/store.js';

/** For its owner alone: the files hold prompts. */
const fileMode = 0o600;
const folderMode = 0o700;
const writableByOthers = 0o022;
const openToOthers = 0o077;

/**
 * Makes folder and file where they are not there yet, before SQLite would, whose file anybody could read. Throws a
 * StoreFault for what others could read or change. Nothing here may open the file once SQLite has it: the locks of a
 * process end when it closes the file anywhere.
 */
export async function prepareFile(path: string): Promise<void> {
  await prepareFolder(dirname(path));
  await open(path, 'wx', fileMode).then(
    (file) => file.close(),
    (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw cannot('be made', path, error);
    },
  );
  for (const each of [path, `${path}-wal`]) await checkFile(each);
}

async function prepareFolder(folder: string): Promise<void> {
  await mkdir(folder, folderMode).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw cannot('be made', folder, error);
  });
  await checkFolder(folder);
}

async function checkFolder(folder: string): Promise<void> {
  const { mode, uid } = await stat(folder).catch((error: NodeJS.ErrnoException) => {
    throw cannot('be used', folder, error); // a link that leads nowhere
  });
  if ((mode & writableByOthers) !== 0) throw new StoreFault(`others can write to the folder ${folder}: chmod 700`);
  if (uid !== 0 && uid !== process.getuid?.()) throw new StoreFault(`the folder ${folder} belongs to another user`);
}

/** Resolves with whether it is there. Throws a StoreFault for what others can read, or is no file. */
export async function checkFile(path: string): Promise<boolean> {
  const stats = await lstat(path).catch(() => null);
  if (stats === null) return false;
  if (!stats.isFile()) throw new StoreFault(`${path} is not a file`);
  if (stats.uid !== process.getuid?.()) throw new StoreFault(`${path} belongs to another user`);
  if ((stats.mode & openToOthers) !== 0) throw new StoreFault(`others can read ${path}: chmod 600`);
  return true;
}

/** The path itself is at fault. Other errors may pass: a mount may come, or a disk have room again. */
const codesOfPaths = ['ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'EINVAL'];

function cannot(what: string, path: string, { code = '' }: NodeJS.ErrnoException): StoreFault {
  const Fault = codesOfPaths.includes(code) ? StoreFault : PassingFault;
  return new Fault(`${path} cannot ${what} (${code})`);
}

/** An empty file for a copy. Throws if the file exists. */
export async function makeEmptyFile(path: string): Promise<void> {
  await (await open(path, 'wx', fileMode)).close();
}

/** Beside the file, the id of the process that has it open: the lock itself does not contain it. */
export function pidFileOf(path: string): string {
  return `${path}.pid`;
}

export async function writePidFile(path: string): Promise<void> {
  await writeFile(pidFileOf(path), `${process.pid}\n`, { mode: fileMode });
}

export async function removePidFile(path: string): Promise<void> {
  await rm(pidFileOf(path), { force: true });
}

/** The process that has the file open, in words. */
export async function holderOf(path: string): Promise<string> {
  const text = await readFile(pidFileOf(path), 'utf8').catch(() => '');
  const pid = /^\d+$/.exec(text.trim())?.[0];
  return pid === undefined ? 'another process' : `process ${pid}`;
}

export async function bytesOfFile(path: string): Promise<number> {
  return (await stat(path)).size;
}

/** What a start would refuse, of the file, what belongs to it, and the copies beside it. */
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

/** The first bytes of each SQLite file. */
const magic = 'SQLite format 3\0';

/** Names of the other files of SQLite in its folder: copies from before a change of version, and backups. */
export async function copiesBeside(path: string): Promise<string[]> {
  const { ino } = await lstat(path); // also under another name: to open it here would give up its lock
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

import { lstat, mkdir, open, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { StoreFault } from '../store-fault.js';

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
  const { mode, uid } = await stat(folder).catch((error: NodeJS.ErrnoException) => {
    throw cannot('be used', folder, error); // a link that leads nowhere
  });
  if ((mode & writableByOthers) !== 0) throw new StoreFault(`others can write to the folder ${folder}: chmod 700`);
  if (uid !== 0 && uid !== process.getuid?.()) throw new StoreFault(`the folder ${folder} belongs to another user`);
}

async function checkFile(path: string): Promise<void> {
  const stats = await lstat(path).catch(() => null);
  if (stats === null) return;
  if (!stats.isFile()) throw new StoreFault(`${path} is not a file`);
  if (stats.uid !== process.getuid?.()) throw new StoreFault(`${path} belongs to another user`);
  if ((stats.mode & openToOthers) !== 0) throw new StoreFault(`others can read ${path}: chmod 600`);
}

function cannot(what: string, path: string, { code }: NodeJS.ErrnoException): StoreFault {
  return new StoreFault(`${path} cannot ${what} (${code})`);
}

/** An empty file for a copy. Throws where there is one already. */
export async function makeEmptyFile(path: string): Promise<void> {
  await (await open(path, 'wx', fileMode)).close();
}

/** Beside the file, the id of the process that holds it: the lock itself does not tell. */
export function pidFileOf(path: string): string {
  return `${path}.pid`;
}

export async function writePidFile(path: string): Promise<void> {
  await writeFile(pidFileOf(path), `${process.pid}\n`, { mode: fileMode });
}

export async function removePidFile(path: string): Promise<void> {
  await rm(pidFileOf(path), { force: true });
}

/** The process that holds the file, in words. */
export async function holderOf(path: string): Promise<string> {
  const text = await readFile(pidFileOf(path), 'utf8').catch(() => '');
  const pid = /^\d+$/.exec(text.trim())?.[0];
  return pid === undefined ? 'another process' : `process ${pid}`;
}

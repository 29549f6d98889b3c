import { execFile } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { temporaryFolder } from './folder.js';

const run = promisify(execFile);

/** File system with few pages and inodes, mounted for one test. Needs root. */
export interface TinyDisk extends AsyncDisposable {
  readonly path: string;
  /** Fills all space and all inodes. */
  fill(): Promise<void>;
  /** Removes the filling. */
  empty(): Promise<void>;
  /** Changes the size. */
  resize(bytes: number): Promise<void>;
}

export async function mountTinyDisk(bytes = 64 * 1024): Promise<TinyDisk> {
  const folder = await temporaryFolder();
  await run('mount', ['-t', 'tmpfs', '-o', `size=${bytes},nr_inodes=32,mode=1777`, 'tiny-disk', folder.path]);
  const fillers = Array.from({ length: 64 }, (_, index) => join(folder.path, `filler-${index}`));
  const unmount = async () => {
    await run('umount', ['--lazy', folder.path]);
    await folder[Symbol.asyncDispose]();
  };
  return {
    path: folder.path,
    fill: async () => {
      for (const path of fillers) await writeUntilFull(path);
    },
    empty: async () => {
      await Promise.all(fillers.map((path) => rm(path, { force: true })));
    },
    resize: async (bytes) => {
      await run('mount', ['-o', `remount,size=${bytes}`, folder.path]);
    },
    [Symbol.asyncDispose]: unmount,
  };
}

/** Writes whole pages, the allocation units of this file system. */
async function writeUntilFull(path: string): Promise<void> {
  const page = 'x'.repeat(4096);
  try {
    for (;;) await writeFile(path, page, { flag: 'a' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
}

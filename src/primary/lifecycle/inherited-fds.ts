import { close } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { promisify } from 'node:util';
import { readVirtualFile } from '../../shared/process/kernel-files.js';

const firstAfterStdio = 3;
const closeOnExec = 0o2000000;

/**
 * Closes the descriptors that this process was started with by accident. Node keeps only the low ones from the programs that
 * it starts, so that every model CLI would have the others. `kept` were meant for this process.
 */
export async function closeInherited(kept: readonly number[]): Promise<void> {
  const names = await readdir('/proc/self/fd').catch(() => []);
  const others = names.map(Number).filter((fd) => fd >= firstAfterStdio && !kept.includes(fd));
  await Promise.all(others.map(async (fd) => (await isInherited(fd)) && promisify(close)(fd).catch(() => {})));
}

/** Node marks all that it opens itself. */
async function isInherited(fd: number): Promise<boolean> {
  const text = await readVirtualFile(`/proc/self/fdinfo/${fd}`).then(String, () => '');
  const flags = /^flags:\s*([0-7]+)$/m.exec(text)?.[1];
  return flags !== undefined && (Number.parseInt(flags, 8) & closeOnExec) === 0;
}

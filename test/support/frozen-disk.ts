import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { temporaryFolder } from './folder.js';

const run = promisify(execFile);
const diskBytes = 16 * 1024 * 1024;

/** A file system that can be frozen: until it thaws, whoever writes to it waits in the kernel. Needs root. */
export interface FreezableDisk extends AsyncDisposable {
  readonly path: string;
  freeze(): Promise<void>;
  thaw(): Promise<void>;
}

export async function mountFreezableDisk(): Promise<FreezableDisk> {
  const images = await temporaryFolder();
  const folder = await temporaryFolder();
  const image = join(images.path, 'image');
  await writeFile(image, '');
  await run('truncate', ['--size', String(diskBytes), image]);
  await run('mkfs.ext4', ['-q', image]);
  await run('mount', ['-o', 'loop', image, folder.path]);
  const thaw = async () => void (await run('fsfreeze', ['--unfreeze', folder.path]));
  return {
    path: folder.path,
    freeze: async () => void (await run('fsfreeze', ['--freeze', folder.path])),
    thaw,
    [Symbol.asyncDispose]: async () => {
      await thaw().catch(() => {}); // else it can never be unmounted
      await run('umount', ['--lazy', folder.path]);
      await folder[Symbol.asyncDispose]();
      await images[Symbol.asyncDispose]();
    },
  };
}

import { execFileSync } from 'node:child_process';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readSmallFile } from '../../../../src/shared/config/small-file.js';
import { temporaryFolder } from '../../../support/basics/folder.js';

describe('A small file', () => {
  it('is read up to its limit of bytes, also through a link', async () => {
    await using folder = await temporaryFolder();
    const [path, link] = [join(folder.path, 'file'), join(folder.path, 'link')];
    await writeFile(path, 'a'.repeat(1024));
    await symlink(path, link);
    expect((await readSmallFile(link, 1024)).length).toBe(1024);
    await writeFile(path, 'a'.repeat(1025));
    await expect(readSmallFile(path, 1024)).rejects.toThrow('it is larger than 1 KB');
  });

  it.each([
    ['a folder', (path: string) => mkdir(path), 'it is a folder'],
    ['a named pipe', async (path: string) => void execFileSync('mkfifo', [path]), 'it is not a regular file'],
    ['missing', async () => {}, 'ENOENT'],
  ])('is not read if it is %s', async (_, make, message) => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'file');
    await make(path);
    await expect(readSmallFile(path, 1024)).rejects.toThrow(message);
  });
});

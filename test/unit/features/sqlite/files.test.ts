import { chmod, chown, mkdir, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { holderOf, prepareFile, removePidFile, writePidFile } from '../../../../src/features/sqlite/files.js';
import { temporaryFolder } from '../../../support/basics/folder.js';

async function modeOf(path: string): Promise<string> {
  return ((await stat(path)).mode & 0o777).toString(8);
}

describe('The file of a store', () => {
  it('is created with access only for its owner, as is its folder', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'state', 'store.db');
    await prepareFile(path);
    expect([await modeOf(join(folder.path, 'state')), await modeOf(path)]).toEqual(['700', '600']);
    await writeFile(path, 'kept');
    await prepareFile(path);
    expect((await stat(path)).size).toBe(4);
  });

  it.each([0o777, 0o770, 0o1777])('is not created in a folder that other users can write to (%o)', async (mode) => {
    await using folder = await temporaryFolder();
    await chmod(folder.path, mode);
    await expect(prepareFile(join(folder.path, 'store.db'))).rejects.toThrow(
      `others can write to the folder ${folder.path}`,
    );
  });

  it.each(['store.db', 'store.db-wal'])('is refused if other users can read %s', async (name) => {
    await using folder = await temporaryFolder();
    await writeFile(join(folder.path, name), '', { mode: 0o644 });
    await expect(prepareFile(join(folder.path, 'store.db'))).rejects.toThrow(
      `others can read ${join(folder.path, name)}: chmod 600`,
    );
  });

  it('is refused if it is not a regular file', async () => {
    await using folder = await temporaryFolder();
    await mkdir(join(folder.path, 'a'));
    await symlink('/etc/passwd', join(folder.path, 'b'));
    for (const name of ['a', 'b']) {
      await expect(prepareFile(join(folder.path, name))).rejects.toThrow('is not a file');
    }
    await expect(prepareFile('/proc/store.db')).rejects.toThrow('/proc/store.db cannot be created (ENOENT)');
  });

  it('is refused if its folder is a broken or circular link', async () => {
    await using folder = await temporaryFolder();
    await symlink(join(folder.path, 'nowhere'), join(folder.path, 'a'));
    await symlink('b', join(folder.path, 'b'));
    for (const [name, code] of Object.entries({ a: 'ENOENT', b: 'ELOOP' })) {
      const path = join(folder.path, name);
      await expect(prepareFile(join(path, 'store.db'))).rejects.toThrow(`${path} cannot be used (${code})`);
    }
  });

  (process.getuid?.() === 0 ? it : it.skip)('is refused where it belongs to another user', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'store.db');
    await writeFile(path, '', { mode: 0o600 });
    await chown(path, 1, 1);
    await expect(prepareFile(path)).rejects.toThrow(`${path} belongs to another user`);
  });

  it('has beside it the id of the process that uses it', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'store.db');
    expect(await holderOf(path)).toBe('another process');
    await writePidFile(path);
    expect(await holderOf(path)).toBe(`process ${process.pid}`);
    await removePidFile(path);
    await removePidFile(path);
    expect(await holderOf(path)).toBe('another process');
  });
});

import { rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { OpenFiles } from '../../../../src/features/sqlite/database.js';
import { temporaryFolder } from '../../../support/basics/folder.js';

describe('The open files of SQLite', () => {
  it('are reported missing when they are deleted, replaced or linked to, until they are restored', async () => {
    await using folder = await temporaryFolder();
    const [path, log, away] = ['db', 'db-wal', 'away'].map((name) => join(folder.path, name)) as [
      string,
      string,
      string,
    ];
    for (const each of [path, log]) await writeFile(each, '');
    const files = new OpenFiles([path, log]);
    files.check();
    for (const each of [path, log]) {
      await rename(each, away);
      expect(() => files.check()).toThrow(`${each} was deleted or replaced`);
      await symlink(away, each);
      expect(() => files.check()).toThrow(`${each} was deleted or replaced`);
      await rm(each);
      await writeFile(each, '');
      expect(() => files.check()).toThrow(`${each} was deleted or replaced`);
      await rename(away, each);
      files.check();
    }
  });
});

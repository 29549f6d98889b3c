import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { UserNames } from '../../../../src/worker/access/user-tables.js';
import { temporaryFolder } from '../../../support/basics/folder.js';

describe('The names of users', () => {
  it('are read from the file, again whenever it changes', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'passwd');
    await writeFile(
      path,
      'root:x:0:0:root:/root:/bin/sh\ntoor:x:0:0::/:/bin/sh\nada:x:1000:1000:,,,:/home/ada:/bin/sh\n',
    );
    const names = new UserNames(path);
    expect(await Promise.all([0, 1000, 1001].map((uid) => names.nameOf(uid)))).toEqual(['root', 'ada', 'uid-1001']);
    await writeFile(path, 'bob:x:1001:1001::/home/bob:/bin/sh\n');
    expect(await Promise.all([1000, 1001].map((uid) => names.nameOf(uid)))).toEqual(['uid-1000', 'bob']);
  });

  it('never look like the number of another user', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'passwd');
    await writeFile(path, 'uid-1000:x:1001:1001::/:/bin/sh\n');
    expect(await new UserNames(path).nameOf(1001)).toBe('uid-1001');
  });

  it('are numbers if there is no file', async () => {
    expect(await new UserNames('/nowhere/passwd').nameOf(7)).toBe('uid-7');
  });
});

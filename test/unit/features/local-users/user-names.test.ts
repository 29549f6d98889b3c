import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { UserNames } from '../../../../src/features/local-users/user-names.js';
import { temporaryFolder } from '../../../support/basics/folder.js';

describe('The names of users', () => {
  it('are read from the file, again whenever it changes', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'passwd');
    const ada = 'ada:x:1000:1000:,,,:/home/ada:/bin/sh\n';
    await writeFile(path, `root:x:0:0:root:/root:/bin/sh\ntoor:x:0:0::/:/bin/sh\n${ada}`);
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

  it('belong to one user each: the second one with a name is a number', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'passwd');
    await writeFile(path, 'ada:x:1000:1000::/:/bin/sh\nada:x:1001:1001::/:/bin/sh\n');
    const names = new UserNames(path);
    expect(await Promise.all([1000, 1001].map((uid) => names.nameOf(uid)))).toEqual(['ada', 'uid-1001']);
  });

  it.each(['ada', 'ada:x', 'ada:x:', 'ada:x:one:1::/:/bin/sh', 'ada x 1000', 'ada:x:1000'])(
    'are taken also by a damaged line: %j',
    async (line) => {
      await using folder = await temporaryFolder();
      const path = join(folder.path, 'passwd');
      await writeFile(path, `${line}\nada:x:1001:1001::/:/bin/sh\nbob:x:1002:1002::/:/bin/sh\n`);
      const names = new UserNames(path);
      expect(await Promise.all([1000, 1001, 1002].map((uid) => names.nameOf(uid)))).toEqual([
        'uid-1000',
        'uid-1001',
        'bob',
      ]);
    },
  );

  it('are numbers if there is no file', async () => {
    expect(await new UserNames('/nowhere/passwd').nameOf(7)).toBe('uid-7');
  });
});

import { access, mkdir, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import {
  makeRuntimeDirectory,
  removeDirectories,
  runtimeParent,
} from '../../../../src/primary/lifecycle/runtime-files.js';
import { ConfigFault } from '../../../../src/shared/config/config.js';
import { ownerOfFolder } from '../../../../src/shared/process/proc.js';
import { temporaryFolder } from '../../../support/basics/folder.js';

const owner = { pid: 7, startTicks: '123', pidNamespace: '4026531836' };

describe('The parent of the runtime directory', () => {
  it.each([
    ['/run/prompt-relay', '/run/prompt-relay'],
    ['/run/first:/run/second', '/run/first'],
    ['run', join(process.cwd(), 'run')],
  ])('is the one that systemd names, as an absolute path: %s', (value, path) => {
    expect(runtimeParent({ RUNTIME_DIRECTORY: value })).toEqual({ variable: 'RUNTIME_DIRECTORY', path });
  });

  it.each([{}, { RUNTIME_DIRECTORY: '' }])('is the folder for temporary files if systemd names none: %j', (env) => {
    expect(runtimeParent(env)).toEqual({ variable: 'TMPDIR', path: tmpdir() });
  });
});

describe('The runtime directory', () => {
  it('is a new folder that no other user can open, named after its owner', async () => {
    await using folder = await temporaryFolder();
    const parent = { variable: 'TMPDIR', path: folder.path } as const;
    const paths = [await makeRuntimeDirectory(parent, owner), await makeRuntimeDirectory(parent, owner)];
    expect(new Set(paths).size).toBe(2);
    for (const path of paths) {
      expect([dirname(path), ownerOfFolder(basename(path))]).toEqual([folder.path, owner]);
      expect((await stat(path)).mode & 0o777).toBe(0o700);
    }
  });

  it.each(['RUNTIME_DIRECTORY', 'TMPDIR'] as const)(
    'is a configuration fault if it cannot be created, with the name of the variable: %s',
    async (variable) => {
      await using folder = await temporaryFolder();
      const path = join(folder.path, 'missing');
      const failure = await makeRuntimeDirectory({ variable, path }, owner).catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(ConfigFault);
      expect(failure).toMatchObject({ faults: [`${variable}: cannot create a folder in ${path} (ENOENT)`] });
    },
  );

  it('is a configuration fault if its parent is no folder', async () => {
    const parent = { variable: 'TMPDIR', path: '/dev/null' } as const;
    const faults = ['TMPDIR: cannot create a folder in /dev/null (ENOTDIR)'];
    await expect(makeRuntimeDirectory(parent, owner)).rejects.toMatchObject({ faults });
  });

  it('is removed with its contents, and need not exist', async () => {
    await using folder = await temporaryFolder();
    const path = await makeRuntimeDirectory({ variable: 'TMPDIR', path: folder.path }, owner);
    await mkdir(join(path, 'deep'));
    await writeFile(join(path, 'deep', 'file'), 'text');
    await removeDirectories([path, path]);
    await expect(access(path)).rejects.toMatchObject({ code: 'ENOENT' });
    await removeDirectories([path, path]);
  });
});

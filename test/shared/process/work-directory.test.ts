import { mkdir, readdir, readlink, stat, symlink, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { makeWorkDirectory, removeWorkDirectory } from '../../../src/shared/process/work-directory.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/folder.js';

describe('the folder of the working directories', () => {
  let folder: TemporaryFolder;
  let runtime: string;
  let parent: string;

  beforeEach(async () => {
    folder = await temporaryFolder();
    runtime = join(folder.path, 'runtime');
    parent = join(folder.path, 'temporary');
    await mkdir(runtime);
    await mkdir(parent);
  });
  afterEach(() => folder[Symbol.asyncDispose]());

  it('is private, and its name tells nothing', async () => {
    const paths = [await makeWorkDirectory(runtime, parent)];
    await mkdir(join(folder.path, 'other'));
    paths.push(await makeWorkDirectory(join(folder.path, 'other'), parent));
    expect(new Set(paths).size).toBe(2);
    for (const path of paths) {
      expect(basename(path)).toMatch(/^[0-9a-f]{16}$/);
      expect((await stat(path)).mode & 0o777).toBe(0o700);
    }
  });

  it('is found by way of the runtime directory, and removed with all that is in it', async () => {
    const path = await makeWorkDirectory(runtime, parent);
    expect(await readlink(join(runtime, 'work'))).toBe(path);
    await writeFile(join(path, 'litter'), '');
    await removeWorkDirectory(runtime);
    expect(await readdir(parent)).toEqual([]);
    await removeWorkDirectory(runtime);
  });

  it('is the runtime directory where none can be made', async () => {
    expect(await makeWorkDirectory(runtime, join(folder.path, 'missing'))).toBe(runtime);
    expect(await readdir(runtime)).toEqual([]);
    await removeWorkDirectory(runtime);
    expect(await readdir(folder.path)).toEqual(expect.arrayContaining(['runtime']));
  });

  it.each(['precious', '0123456789abcdeg', '0123456789abcdef/precious'])(
    'is nothing else that the link may lead to: %s',
    async (name) => {
      await mkdir(join(parent, name), { recursive: true });
      await symlink(join(parent, name), join(runtime, 'work'));
      await removeWorkDirectory(runtime);
      expect((await stat(join(parent, name))).isDirectory()).toBe(true);
    },
  );

  it('is no link that stands in its place', async () => {
    const place = join(parent, '0123456789abcdef');
    await mkdir(join(parent, 'precious'));
    await symlink(join(parent, 'precious'), place);
    await symlink(place, join(runtime, 'work'));
    await removeWorkDirectory(runtime);
    expect(await readdir(parent)).toEqual(expect.arrayContaining(['precious']));
  });
});

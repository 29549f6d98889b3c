import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ProcessHome } from '../../../../../src/primary/cli/process/launcher.js';
import { type TemporaryFolder, temporaryFolder } from '../../../../support/basics/folder.js';

describe('The files of a process on disk', () => {
  let folder: TemporaryFolder;
  let home: ProcessHome;

  beforeEach(async () => {
    folder = await temporaryFolder();
    home = new ProcessHome({ runtimeDirectory: folder.path, workDirectory: folder.path, home: null }, 7);
  });
  afterEach(() => folder[Symbol.asyncDispose]());

  it('are an empty folder, and files beside it, which no other user can read', async () => {
    await home.create([{ path: home.systemPath, text: 'Be brief.' }]);
    const modes = [home.workingDirectory, home.systemPath].map(async (path) => (await stat(path)).mode & 0o777);
    expect(await Promise.all(modes)).toEqual([0o700, 0o600]);
    expect([await readdir(home.workingDirectory), await readFile(home.systemPath, 'utf8')]).toEqual([[], 'Be brief.']);
  });

  it('are new: no existing folder or file is reused', async () => {
    await writeFile(home.systemPath, 'a trap');
    await expect(home.create([{ path: home.systemPath, text: 'secret' }])).rejects.toMatchObject({ code: 'EEXIST' });
    expect(await readFile(home.systemPath, 'utf8')).toBe('a trap');
    const other = new ProcessHome({ runtimeDirectory: folder.path, workDirectory: folder.path, home: null }, 8);
    await mkdir(other.workingDirectory);
    await expect(other.create([])).rejects.toMatchObject({ code: 'EEXIST' });
  });

  it('are removed with everything the program left there', async () => {
    await home.create([{ path: home.systemPath, text: 'Be brief.' }]);
    await mkdir(join(home.workingDirectory, 'cache'));
    await writeFile(join(home.workingDirectory, 'cache', 'file'), 'litter');
    await home.removeFiles();
    expect(await readdir(folder.path)).toEqual([]);
  });

  it('include a HOME if the adapter requests one, with its files and links', async () => {
    const credential = join(folder.path, 'auth.json');
    await writeFile(credential, 'key');
    const ownHome = {
      variables: { HOME: '.', CODEX_HOME: '.codex' },
      files: [{ path: '.gemini/settings.json', text: '{}' }],
      links: [
        { path: '.codex/auth.json', to: credential },
        { path: '.other/token', to: join(folder.path, 'missing') },
      ],
    };
    const furnished = new ProcessHome({ runtimeDirectory: folder.path, workDirectory: folder.path, home: ownHome }, 9);
    await furnished.create([]);
    const { HOME = '', CODEX_HOME = '' } = furnished.variables;
    expect(CODEX_HOME).toBe(join(HOME, '.codex'));
    expect((await readdir(HOME)).sort()).toEqual(['.codex', '.gemini']);
    expect(await readFile(join(CODEX_HOME, 'auth.json'), 'utf8')).toBe('key');
    expect((await stat(join(HOME, '.gemini', 'settings.json'))).mode & 0o777).toBe(0o600);
    expect((await stat(HOME)).mode & 0o777).toBe(0o700);
    await furnished.removeFiles();
    expect(await readdir(folder.path)).toEqual(['auth.json']);
  });

  it('are removed without an error if they are already gone, or never existed', async () => {
    await expect(home.removeFiles()).resolves.toBeUndefined();
    await home.create([]);
    await home.removeFiles();
    await expect(home.removeFiles()).resolves.toBeUndefined();
  });
});

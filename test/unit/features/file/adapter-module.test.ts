import { chmod, chown, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { adapterLoader, importAdapterModule } from '../../../../src/features/file/adapter-module.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { type TemporaryFolder, temporaryFolder } from '../../../support/basics/folder.js';

let folder: TemporaryFolder;
let path: string;

beforeEach(async () => {
  folder = await temporaryFolder();
  path = join(folder.path, 'adapter.cjs');
  await writeFile(path, '', { mode: 0o644 });
});

afterEach(() => folder[Symbol.asyncDispose]());

/** Resolves with the path of the imported module, or with the reason why nothing was imported. */
function imported(from = path): Promise<unknown> {
  return importAdapterModule(from, async (file) => file).catch((error: Error) => error.message);
}

const asRoot = process.geteuid?.() === 0 ? it : it.skip;

describe('A file with an adapter', () => {
  it('is imported by its real path', async () => {
    const link = join(folder.path, 'link.cjs');
    await symlink(path, link);
    expect([await imported(), await imported(link)]).toEqual([path, path]);
  });

  it('is refused if other users can write to it or to a parent folder', async () => {
    await chmod(path, 0o664);
    expect(await imported()).toBe('can be written by other users: chmod go-w it');
    await chmod(path, 0o646);
    expect(await imported()).toBe('can be written by other users: chmod go-w it');
    await chmod(path, 0o644);
    await chmod(folder.path, 0o777);
    expect(await imported()).toBe(`can be replaced by other users, who can write to ${folder.path}`);
    await chmod(folder.path, 0o1777);
    expect(await imported()).toBe(path);
  });

  asRoot('is refused where it, or a folder above it, belongs to somebody else', async () => {
    await chown(path, 12_345, 12_345);
    expect(await imported()).toBe('must belong to root or to the user of the service: chown it');
    await chown(path, 0, 0);
    await chown(folder.path, 12_345, 12_345);
    expect(await imported()).toBe(`can be replaced by other users, who can write to ${folder.path}`);
  });

  it('is refused if it contains no adapter or cannot be loaded', async () => {
    expect(await imported(join(folder.path, 'nowhere.cjs'))).toMatch(/^ENOENT/);
    const other = join(folder.path, 'folder.cjs');
    await mkdir(other);
    expect(await imported(other)).toBe('is not a file');
    const broken = importAdapterModule(path, () => Promise.reject(new SyntaxError('Unexpected token')));
    await expect(broken).rejects.toThrow('cannot be loaded: Unexpected token');
  });

  it('is loaded within a time limit', async () => {
    const clock = new FakeClock();
    const never = adapterLoader(clock, () => new Promise(() => {}))(path).catch((error: Error) => error.message);
    await clock.advance(10_000);
    expect(await never).toBe('cannot be loaded: it takes longer than 10000 ms');
    expect(await adapterLoader(clock, async (file) => file)(path)).toBe(path);
    const broken = adapterLoader(clock, () => Promise.reject(new Error('is not a file')))(path);
    await expect(broken).rejects.toThrow('is not a file');
    expect(clock.pending).toBe(0);
  });
});

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdir, mkdtemp, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Instance } from '../../../src/shared/instance.js';
import { instanceOfProcess } from '../../../src/shared/proc/proc-fs.js';
import {
  folderPrefix,
  type RuntimeParent,
  removeDirectoryOf,
  removeLeftDirectories,
  runtimeParent,
} from '../../../src/shared/proc/runtime-directory.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/folder.js';

const nobody = 65_534;
const asRoot = process.getuid?.() === 0 ? it : it.skip;

let folder: TemporaryFolder;
let parent: RuntimeParent;
let dead: Instance;
let living: Instance;

beforeEach(async () => {
  folder = await temporaryFolder();
  parent = { variable: 'TMPDIR', path: folder.path };
  living = await instanceOfProcess(process.pid);
  const child = spawn('/bin/sleep', ['60'], { stdio: 'ignore' });
  await once(child, 'spawn');
  dead = await instanceOfProcess(child.pid as number);
  child.kill('SIGKILL');
  await once(child, 'exit');
});

afterEach(() => folder[Symbol.asyncDispose]());

/** A folder as a primary makes it, with a file and a folder in it. */
async function folderOf(owner: Instance): Promise<string> {
  const path = await mkdtemp(join(folder.path, folderPrefix(owner)));
  await writeFile(join(path, '1.system'), 'text');
  await mkdir(join(path, '1', 'litter'), { recursive: true });
  return path;
}

function names(): Promise<string[]> {
  return readdir(folder.path);
}

describe('The folder of a primary', () => {
  it.each([
    [{}, { variable: 'TMPDIR', path: tmpdir() }],
    [{ RUNTIME_DIRECTORY: '' }, { variable: 'TMPDIR', path: tmpdir() }],
    [{ RUNTIME_DIRECTORY: '/run/relay' }, { variable: 'RUNTIME_DIRECTORY', path: '/run/relay' }],
    [{ RUNTIME_DIRECTORY: '/run/relay:/run/door' }, { variable: 'RUNTIME_DIRECTORY', path: '/run/relay' }],
    [{ RUNTIME_DIRECTORY: 'relay' }, { variable: 'RUNTIME_DIRECTORY', path: resolve('relay') }],
  ])('is made, with %j, in %j', (env, expected) => {
    expect(runtimeParent(env)).toEqual(expected);
  });

  it('is removed once it is dead, with all that is in it, and not while it lives', async () => {
    for (const owner of [dead, living, dead]) await folderOf(owner);
    const unknown = { ...dead, pidNamespace: '1' };
    await folderOf(unknown);
    await removeLeftDirectories(parent);
    const kept = (await names()).map((name) => name.slice(0, -6)).toSorted();
    expect(kept).toEqual([folderPrefix(living), folderPrefix(unknown)].toSorted());
  });

  it('is removed at once by the primary itself, which leaves that of others alone', async () => {
    await folderOf(living);
    const other = await folderOf(dead);
    await removeDirectoryOf(living, parent);
    expect((await names()).map((name) => join(folder.path, name))).toEqual([other]);
  });

  it('may be removed by many at once', async () => {
    for (let count = 0; count < 5; count++) await folderOf(dead);
    await Promise.all(Array.from({ length: 4 }, () => removeLeftDirectories(parent)));
    expect(await names()).toEqual([]);
  });

  it('is looked for in vain where nothing can be seen', async () => {
    await removeLeftDirectories({ ...parent, path: '/nowhere' });
  });
});

describe('What only looks like the folder of a dead primary', () => {
  it('is left alone: other names, files, links and what they lead to', async () => {
    await using elsewhere = await temporaryFolder();
    await writeFile(join(elsewhere.path, 'precious'), 'whole');
    const name = `${folderPrefix(dead)}AAAAAA`;
    await writeFile(join(folder.path, `${folderPrefix(dead)}BBBBBB`), '');
    await symlink(elsewhere.path, join(folder.path, name));
    for (const other of [`${name}A`, `x${name}`, `${folderPrefix(dead)}..`, 'prompt-relay-test-AAAAAA', 'AAAAAA']) {
      await mkdir(join(folder.path, other));
    }
    const before = await names();
    await symlink(elsewhere.path, join(await folderOf(dead), 'link'));
    await removeLeftDirectories(parent);
    expect((await names()).toSorted()).toEqual(before.toSorted());
    expect(await readFile(join(elsewhere.path, 'precious'), 'utf8')).toBe('whole');
  });

  asRoot("is left alone when it is another user's", async () => {
    await chown(await folderOf(dead), nobody, nobody);
    await removeLeftDirectories(parent);
    expect(await names()).toHaveLength(1);
  });
});

import { execFileSync } from 'node:child_process';
import { chmod, chown, lstat, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { LoginFile } from '../../../../src/command/base/login-file.js';
import { temporaryFolder } from '../../../support/basics/folder.js';

const login = { url: 'http://relay:5051', key: 'the-key-of-ada' };
const isRoot = process.geteuid?.() === 0;

async function home() {
  const made = await temporaryFolder();
  const folder = join(made.path, 'prompt-relay');
  const file = new LoginFile({ XDG_CONFIG_HOME: made.path, HOME: '/nonexistent' });
  const path = join(folder, 'login.json');
  return { root: made.path, folder, path, file, [Symbol.asyncDispose]: () => made[Symbol.asyncDispose]() };
}

const modeOf = async (path: string) => (await stat(path)).mode & 0o777;

describe('The stored login', () => {
  it('can be read by its owner only, in a private folder', async () => {
    await using place = await home();
    expect(await place.file.readLogin()).toBeNull();
    expect(await place.file.writeLogin(login)).toBe(place.path);
    expect(await place.file.readLogin()).toEqual(login);
    expect([await modeOf(place.path), await modeOf(place.folder)]).toEqual([0o600, 0o700]);
    expect([await place.file.removeLogin(), await place.file.removeLogin()]).toEqual([true, false]);
    expect(await place.file.readLogin()).toBeNull();
  });

  it('is replaced atomically, and leaves no other file', async () => {
    await using place = await home();
    await Promise.all([1, 2, 3, 4, 5].map((n) => place.file.writeLogin({ ...login, key: `key-${n}` })));
    expect((await place.file.readLogin())?.key).toMatch(/^key-\d$/);
    expect(await readdir(place.folder)).toEqual(['login.json']);
  });

  it('replaces a symbolic link, never the file behind it', async () => {
    await using place = await home();
    await mkdir(place.folder);
    const victim = join(place.root, 'victim');
    await writeFile(victim, 'untouched');
    await symlink(victim, place.path);
    await expect(place.file.readLogin()).rejects.toThrow('it is a symbolic link');
    await place.file.writeLogin(login);
    expect([await readFile(victim, 'utf8'), (await lstat(place.path)).isFile()]).toEqual(['untouched', true]);
  });

  it.each(['604', '640', '622'])('is rejected if other users have access: mode %s', async (mode) => {
    await using place = await home();
    await place.file.writeLogin(login);
    await chmod(place.path, Number.parseInt(mode, 8));
    await expect(place.file.readLogin()).rejects.toThrow('other users may read or write it');
  });

  it.each(['', '[]', '{"url":1,"key":null}', `{"url":"x"${' '.repeat(70_000)}`])(
    'is rejected if it has other content',
    async (text) => {
      await using place = await home();
      await place.file.writeLogin(login);
      await writeFile(place.path, text);
      await expect(place.file.readLogin()).rejects.toThrow(/it contains no login|it is too large/);
    },
  );

  it('is rejected at once if it is a pipe or a folder', async () => {
    await using place = await home();
    await mkdir(place.path, { recursive: true });
    await expect(place.file.readLogin()).rejects.toThrow('it is not a regular file');
    await using other = await home();
    await mkdir(other.folder);
    execFileSync('mkfifo', ['-m', '600', other.path]);
    await expect(other.file.readLogin()).rejects.toThrow('it is not a regular file');
  });

  it('is not written to a folder that is a link or that others may write to', async () => {
    await using place = await home();
    await mkdir(place.folder);
    await chmod(place.folder, 0o777);
    await expect(place.file.writeLogin(login)).rejects.toThrow('other users may write to');
    await using other = await home();
    await symlink(place.folder, other.folder);
    await expect(other.file.writeLogin(login)).rejects.toThrow('is a symbolic link');
    expect(await readdir(place.folder)).toEqual([]);
  });

  (isRoot ? it : it.skip)('is rejected if it, or its folder, belongs to another user', async () => {
    await using place = await home();
    await place.file.writeLogin(login);
    await chown(place.path, 65_534, 65_534);
    await expect(place.file.readLogin()).rejects.toThrow('it belongs to another user');
    await chown(place.folder, 65_534, 65_534);
    await expect(place.file.writeLogin(login)).rejects.toThrow('belongs to another user');
  });

  it('is under HOME if XDG_CONFIG_HOME is not an absolute path, and nowhere without both', async () => {
    await using folder = await temporaryFolder();
    const file = new LoginFile({ XDG_CONFIG_HOME: 'relative', HOME: folder.path });
    expect(await file.writeLogin(login)).toBe(join(folder.path, '.config', 'prompt-relay', 'login.json'));
    await expect(new LoginFile({}).writeLogin(login)).rejects.toThrow('set HOME or XDG_CONFIG_HOME');
    expect(await new LoginFile({}).readLogin()).toBeNull();
  });
});

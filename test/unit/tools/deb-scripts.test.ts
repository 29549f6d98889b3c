import { execFileSync } from 'node:child_process';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { root } from '../../support/documents/sources.js';

let folder: TemporaryFolder;
let state: string;
let etc: string;

/** Creates stand-ins for the programs that change a host. Each records its call; `getent` knows one account. */
async function makePrograms(account: string): Promise<void> {
  await mkdir(join(folder.path, 'bin'));
  const write = (name: string, text: string) =>
    writeFile(join(folder.path, 'bin', name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  await write('getent', `echo '${account.replace('STATE', state)}'`);
  for (const name of ['userdel', 'deb-systemd-helper', 'deb-systemd-invoke', 'systemctl', 'systemd-sysusers'])
    await write(name, `echo "${name} $*" >>"${folder.path}/calls"`);
}

/** Runs a script of the package on folders of this test, and `before` first, in a separate mount namespace. */
async function run(name: string, args: readonly string[], before = ':'): Promise<string> {
  const text = (await readFile(join(root, 'tools', 'deb', name), 'utf8'))
    .replaceAll('/var/lib/prompt-relay', state)
    .replaceAll('/etc/', `${etc}/`)
    .replaceAll('/run/systemd/system', '/no/such/folder');
  const script = join(folder.path, name);
  await writeFile(script, text);
  const words = ['--mount', 'sh', '-c', `${before} && exec sh "$@" 2>&1`, 'sh', script, ...args];
  return execFileSync('unshare', words, { encoding: 'utf8', env: { PATH: `${folder.path}/bin:/usr/bin:/bin` } });
}

async function calls(): Promise<string> {
  return readFile(join(folder.path, 'calls'), 'utf8').catch(() => '');
}

const exists = (path: string) =>
  stat(path)
    .then(() => true)
    .catch(() => false);

beforeEach(async () => {
  folder = await temporaryFolder();
  state = join(folder.path, 'state');
  etc = join(folder.path, 'etc');
  await mkdir(state);
  await writeFile(join(state, 'store.db'), 'text');
  await mkdir(join(etc, 'prompt-relay'), { recursive: true });
});
afterEach(() => folder[Symbol.asyncDispose]());

(process.getuid?.() === 0 ? describe : describe.skip)('The scripts of the Debian package', () => {
  it('remove the state and the account of the service on purge', async () => {
    await makePrograms('prompt-relay:x:998:998::STATE:/usr/sbin/nologin');
    await run('postrm', ['purge']);
    expect([await exists(state), await exists(join(etc, 'prompt-relay'))]).toEqual([false, false]);
    expect(await calls()).toContain('userdel prompt-relay');
  });

  it('finish a purge if the state is a mount point, which is emptied', async () => {
    await makePrograms('prompt-relay:x:998:998::STATE:/usr/sbin/nologin');
    const disk = join(folder.path, 'disk');
    await mkdir(disk);
    await writeFile(join(disk, 'store.db'), 'text');
    const said = await run('postrm', ['purge'], `mount --bind '${disk}' '${state}'`);
    expect(said).toContain(`${state} could not be removed: a mount point stays`);
    expect(await readdir(disk)).toEqual([]);
    expect(await calls()).toContain('userdel prompt-relay');
  });

  it.each([
    ['with another home', 'prompt-relay:x:1000:1000::/home/prompt-relay:/bin/bash', false],
    ['with the state as its home', 'prompt-relay:x:1000:1000::STATE:/bin/bash', true],
  ])('leave the account of a person %s on purge', async (_, account, leavesState) => {
    await makePrograms(account);
    await run('postrm', ['purge']);
    expect(await exists(state)).toBe(leavesState);
    expect(await calls()).not.toContain('userdel');
  });

  it('create a key at the first installation only, and report which account the service uses', async () => {
    await makePrograms('prompt-relay:x:1000:1000::/home/prompt-relay:/bin/bash');
    const key = join(etc, 'prompt-relay', 'api_key');
    const keyAfter = async (...args: readonly string[]) => {
      const said = await run('postinst', args);
      expect(said).toContain('with the home /home/prompt-relay: the service runs as that user');
      return readFile(key, 'utf8');
    };
    const first = await keyAfter('configure', '');
    expect(first).toMatch(/^[\w+/]{32}\n$/);
    expect(await keyAfter('configure', '0.1.0')).toBe(first);
    await writeFile(key, '');
    expect(await keyAfter('configure', '0.1.0')).toBe('');
    execFileSync('rm', [key]);
    expect(await keyAfter('configure', '0.1.0')).toBe('');
    expect((await stat(key)).mode & 0o777).toBe(0o600);
  });
});

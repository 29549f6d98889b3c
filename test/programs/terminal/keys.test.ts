import { createHash } from 'node:crypto';
import {
  chmod,
  chown,
  link,
  lstat,
  mkdir,
  readdir,
  readFile,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { envFor, runCommand } from '../../support/clients/command.js';
import { type Service, startService } from '../../support/service/service.js';

const digestOf = (key: string) => createHash('sha256').update(key).digest('hex');

describe('keys new', () => {
  it('prints a key, and its line for the keys file', async () => {
    const { code, stdout, stderr } = await runCommand(['keys', 'new', 'ada']);
    const [key = '', line] = stdout.split('\n');
    expect([code, stderr]).toEqual([0, expect.stringContaining('it will not be shown again')]);
    expect(key).toMatch(/^pr_[A-Za-z0-9_-]{32}$/);
    expect(line).toBe(`ada:sha256:${digestOf(key)}`);
  });

  it('accepts options, and prints them as in the keys file', async () => {
    const flags = ['--scopes', 'ask+metrics', '--rate', '60/60', '--concurrent', '2', '--queue', '20', '--weight', '2'];
    const more = ['--models', 'a+b', '--subclients', '--expires', '2027-01-31', '--json'];
    const { stdout } = await runCommand(['keys', 'new', 'ada', ...flags, ...more]);
    const { name, key, line } = JSON.parse(stdout) as Record<string, string>;
    const options =
      'scopes=ask+metrics,rate=60/60,concurrent=2,queue=20,weight=2,models=a+b,subclients,expires=2027-01-31';
    expect([name, line]).toEqual(['ada', `ada:sha256:${digestOf(key ?? '')}:${options}`]);
  });

  it.each([
    [['new'], 'name the holder'],
    [['new', 'a b'], 'the name must be'],
    [['new', '#a'], 'the name must be'],
    [['new', 'ada', '--scopes', 'root'], 'the option scopes must be'],
    [['new', 'ada', '--queue', '-1'], '--queue'],
    [['new', `a:sha256:${'0'.repeat(64)}\nb`], 'the name must be'],
    [['list'], 'name a file'],
    [['add', 'ada'], 'name a file'],
    [['add'], 'name the holder'],
    [['add', 'a b', 'x'], 'the name must be'],
    [['revoke'], 'name the holder'],
    [['rotate'], 'name the holder'],
    [['import'], 'name the file to import'],
    [['rotate', 'ada', 'x', '--old-until', '2020-01-31'], '--old-until 2020-01-31 is over'],
    [['new', 'ada', 'x'], 'unexpected argument x'],
    [['add', 'ada', 'x', '--old-until', '2027-01-31'], '--old-until is only for rotate'],
    [[], 'the action must be add, revoke, rotate, budget, import, list, check, new or lend'],
    [['make', 'ada'], 'the action must be add, revoke, rotate, budget, import, list, check, new or lend'],
  ])('is rejected: keys %j', async (words, message) => {
    const { code, stdout, stderr } = await runCommand(['keys', ...words]);
    expect([code, stdout]).toEqual([64, '']);
    expect(stderr).toContain(message);
  });
});

describe('keys budget', () => {
  it('sets, changes and removes the limits of a key, of a group and of all clients', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'keys');
    const ada = `ada:sha256:${digestOf('ada')}`;
    await writeFile(path, `# people\n${ada}:rate=5/1,tokens=9/day\n@law cost=1/day # no comment`, { mode: 0o600 });
    const lines = async () => (await readFile(path, 'utf8')).split('\n');
    const budget = (...args: readonly string[]) => runCommand(['keys', 'budget', ...args, path]);
    expect((await budget('ada', '--tokens', '100/week', '--cost', '5/day')).code).toBe(0);
    expect((await lines())[1]).toBe(`${ada}:rate=5/1,tokens=100/week,cost=5/day`);
    expect((await budget('ada', '--tokens', 'off')).stderr).toContain('ada has no limit of tokens in');
    expect((await lines())[1]).toBe(`${ada}:rate=5/1,cost=5/day`);
    expect((await budget('@biology', '--cost', '200/month')).stderr).toContain('@biology has cost=200/month in');
    expect((await budget('@*', '--tokens', '1000/day')).code).toBe(0);
    expect((await lines()).slice(-3)).toEqual(['@biology cost=200/month', '@* tokens=1000/day', '']);
    expect((await budget('@biology', '--tokens', '7/day')).code).toBe(0);
    expect((await budget('@biology', '--cost', 'off')).code).toBe(0);
    expect(await lines()).toContain('@biology tokens=7/day');
    expect((await budget('@biology', '--tokens', 'off')).code).toBe(0);
    expect((await lines()).filter((line) => line.startsWith('@biology'))).toEqual([]);
  });

  it('changes nothing if the limit, the name or a flag is wrong', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'keys');
    const text = `ada:sha256:${digestOf('ada')}\nbob:sha256:zz\n`;
    await writeFile(path, text, { mode: 0o600 });
    const budget = async (...args: readonly string[]) => {
      const { code, stderr } = await runCommand(['keys', ...args, path]);
      return [code, stderr];
    };
    expect(await budget('budget', 'ada')).toEqual([64, expect.stringContaining('set --tokens, --cost or both')]);
    expect(await budget('budget', 'eve', '--tokens', '1/day')).toEqual([
      64,
      expect.stringContaining('no key named eve'),
    ]);
    expect(await budget('budget', 'ada', '--tokens', 'many')).toEqual([78, expect.stringContaining('was not changed')]);
    expect(await budget('budget', '@*', '--rate', '1/1')).toEqual([
      64,
      expect.stringContaining('--rate has no meaning'),
    ]);
    expect(await budget('revoke', 'ada', '--rate', '1/1')).toEqual([
      64,
      expect.stringContaining('--rate has no meaning'),
    ]);
    for (const action of ['budget', 'rotate'])
      expect(await budget(action, 'bob', ...(action === 'budget' ? ['--tokens', '1/day'] : []))).toEqual([
        78,
        expect.stringContaining('the line of bob has a fault'),
      ]);
    expect(await readFile(path, 'utf8')).toBe(text);
  });
});

describe('keys list and keys check', () => {
  it('show names and options, and faults, but never a digest', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'keys');
    const [ada, bob] = [digestOf('ada'), digestOf('bob')];
    await writeFile(path, `ada:sha256:${ada}\nbob:sha256:${bob}:scopes=admin,rate=5/1,expires=2020-01-01\n`);
    const env = { MODEL_API_KEYS_FILE: path };
    const listed = await runCommand(['keys', 'list'], { env });
    expect(listed).toMatchObject({
      code: 0,
      stdout: 'ada  ask+chat\nbob  admin     rate=5/1 expires=2020-01-01 expired\n',
    });
    expect(await runCommand(['keys', 'check', path])).toMatchObject({ code: 0, stdout: 'no faults, 2 keys\n' });
    await writeFile(path, `ada:sha256:${ada}\n${bob}\neve:sha256:${bob}:colour=red\n`);
    const checked = await runCommand(['keys', 'check', path]);
    expect([checked.code, checked.stdout, checked.stderr.match(/line \d/g)]).toEqual([78, '', ['line 2', 'line 3']]);
    const broken = await runCommand(['keys', 'list', '--json'], { env });
    expect([broken.code, JSON.parse(broken.stdout)]).toMatchObject([78, { keys: [{ name: 'ada', rate: null }] }]);
    for (const { stdout, stderr } of [listed, checked, broken]) expect(stdout + stderr).not.toMatch(/[0-9a-f]{32}/);
    expect(await runCommand(['keys', 'check', '/nowhere/keys'])).toMatchObject({ code: 78 });
  });

  it('warns of a group without a budget, and refuses a key that has expired before it is made', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'keys');
    await writeFile(path, '@biology tokens=100/day\n', { mode: 0o600 });
    const added = await runCommand(['keys', 'add', 'ada', '--group', 'biolgy', path]);
    expect([added.code, added.stderr]).toEqual([0, expect.stringContaining('did you mean biology?')]);
    const late = await runCommand(['keys', 'add', 'bob', '--expires', '2020-01-01', path]);
    expect([late.code, late.stderr]).toEqual([64, expect.stringContaining('add: --expires 2020-01-01 is over')]);
    const warning = 'the group biolgy of ada has no budget: did you mean biology?';
    const checked = await runCommand(['keys', 'check', path]);
    expect([checked.code, checked.stdout]).toEqual([0, 'no faults, 1 key\n']);
    expect(checked.stderr).toContain(`warning  ${warning}`);
    const json = JSON.parse((await runCommand(['keys', 'check', '--json', path])).stdout);
    expect(json).toEqual({ keys: 1, people: 0, faults: [], warnings: [warning] });
  });

  it('check reports the same faults as the service', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'keys');
    await writeFile(path, `ada:sha256:${digestOf('ada')}\nbob\n`, { mode: 0o600 });
    const { code, stderr } = await runCommand(['check'], { env: { MODEL_API_CLI: 'demo', MODEL_API_KEYS_FILE: path } });
    expect([code, stderr]).toEqual([78, 'fault  MODEL_API_KEYS_FILE: line 2: must begin with name:sha256:\n']);
    await writeFile(path, '@physics cost=200/month\n');
    for (const args of [['check'], ['keys', 'check']]) {
      const env = { MODEL_API_CLI: 'demo', MODEL_API_KEYS_FILE: path };
      const checked = await runCommand(args, { env });
      expect([checked.code, checked.stderr]).toEqual([
        78,
        expect.stringContaining('the line @physics has the option cost, but'),
      ]);
    }
  });
});

/** The file is compared as text, because its format is documented and stable. */
const started = [
  '# The lab',
  `ada:sha256:${digestOf('ada')}:scopes=ask+chat,rate=5/1`,
  '',
  '# Bob leaves in May',
  `bob:sha256:${digestOf('bob')}\r`,
  `eve:sha256:${digestOf('eve')}`,
].join('\n');

async function withFile(test: (path: string, folder: string) => Promise<void>): Promise<void> {
  await using folder = await temporaryFolder();
  const path = join(folder.path, 'keys');
  await writeFile(path, started, { mode: 0o640 });
  await test(path, folder.path);
  expect((await readdir(folder.path)).filter((name) => name.startsWith('.'))).toEqual([]); // no temporary file is left
}

describe('keys add, revoke and rotate', () => {
  it('change only their line, and no other lines, order or comments', () =>
    withFile(async (path) => {
      const added = await runCommand(['keys', 'add', 'zoe', path, '--weight', '2']);
      const zoe = added.stdout.trim();
      expect([added.code, zoe]).toEqual([0, expect.stringMatching(/^pr_[\w-]{32}$/)]);
      expect(added.stderr).toContain('The key of zoe is in ');
      const line = `zoe:sha256:${digestOf(zoe)}:weight=2\n`;
      expect(await readFile(path, 'utf8')).toBe(`${started}\n${line}`);
      const rotated = await runCommand(['keys', 'rotate', 'ada', path, '--json']);
      const { name, key } = JSON.parse(rotated.stdout) as Record<string, string>;
      expect([name, rotated.stderr.includes('no longer works')]).toEqual(['ada', true]);
      const now = started.replace(digestOf('ada'), digestOf(key ?? ''));
      expect(await readFile(path, 'utf8')).toBe(`${now}\n${line}`);
      expect(await runCommand(['keys', 'revoke', 'bob', path])).toMatchObject({ code: 0, stdout: '' });
      expect(await readFile(path, 'utf8')).toBe(`${now.replace(/^bob[^\n]*\n/m, '')}\n${line}`);
      expect((await runCommand(['keys', 'check', path])).stdout).toBe('no faults, 3 keys\n');
      for (const verb of ['revoke', 'rotate']) {
        const { code, stderr } = await runCommand(['keys', verb, 'bob', path]);
        expect([code, stderr]).toEqual([64, 'prompt-relay: keys: the file has no key named bob\n']);
      }
    }));

  it('accept the old key until a day, once', () =>
    withFile(async (path) => {
      await runCommand(['keys', 'rotate', 'ada', path, '--old-until', '2099-01-31']);
      const { stdout } = await runCommand(['keys', 'list', path]);
      expect(stdout).toContain('ada  ask+chat  rate=5/1 previous=…/2099-01-31\n');
      expect(await readFile(path, 'utf8')).toContain(
        `:scopes=ask+chat,rate=5/1,previous=${digestOf('ada')}/2099-01-31\n`,
      );
      await runCommand(['keys', 'rotate', 'ada', path]);
      expect(await readFile(path, 'utf8')).not.toContain('previous=');
      await runCommand(['keys', 'rotate', 'bob', path, '--old-until', '2099-01-31']);
      expect(await readFile(path, 'utf8')).toMatch(/^bob:sha256:\w{64}:previous=\w{64}\/2099-01-31\r$/m);
      const before = await readFile(path, 'utf8');
      const { code, stderr } = await runCommand(['keys', 'rotate', 'eve', path, '--old-until', 'soon']);
      expect([code, stderr]).toEqual([64, expect.stringContaining('must be a day such as 2027-01-31')]);
      expect(await readFile(path, 'utf8')).toBe(before);
    }));

  it('preserve owner, group and mode, and follow a link', () =>
    withFile(async (path, folder) => {
      const isRoot = process.getuid?.() === 0;
      if (isRoot) await chown(path, 1234, 4321);
      await chmod(path, 0o440);
      await mkdir(join(folder, 'etc'));
      const linked = join(folder, 'etc', 'keys');
      await symlink(path, linked);
      expect((await runCommand(['keys', 'add', 'zoe', linked])).code).toBe(0);
      expect((await lstat(linked)).isSymbolicLink()).toBe(true);
      expect(await readFile(path, 'utf8')).toContain('zoe:');
      const { mode, uid, gid } = await stat(path);
      expect(mode & 0o777).toBe(0o440);
      if (isRoot) expect([uid, gid]).toEqual([1234, 4321]);
    }));

  it('create a missing file for a new key, readable only by its owner', () =>
    withFile(async (_, folder) => {
      const path = join(folder, 'new');
      expect((await runCommand(['keys', 'revoke', 'zoe', path])).code).toBe(78);
      expect((await runCommand(['keys', 'add', 'zoe', path])).code).toBe(0);
      expect((await stat(path)).mode & 0o777).toBe(0o600);
      const nowhere = await runCommand(['keys', 'add', 'zoe', join(folder, 'no', 'keys')]);
      expect([nowhere.code, nowhere.stderr]).toEqual([
        78,
        expect.stringContaining('/no: there is no such file or folder'),
      ]);
    }));

  it('change nothing if the file would have a new fault, or has a hard link', () =>
    withFile(async (path, folder) => {
      const fails = async (args: readonly string[], reason: string) => {
        const before = await readFile(path, 'utf8');
        const { code, stdout, stderr } = await runCommand(['keys', ...args]);
        expect([code, stdout, stderr]).toEqual([78, '', expect.stringContaining(reason)]);
        expect(await readFile(path, 'utf8')).toBe(before);
      };
      await fails(['add', 'ada', path], 'already has a key of ada: "prompt-relay keys rotate ada" changes');
      expect((await runCommand(['keys', 'add', 'zoe', folder])).stderr).toContain('is not a regular file');
      await link(path, join(folder, 'second'));
      await fails(['add', 'zoe', path], 'has a second name');
    }));

  it('revoke each line of a key, and say which faults other lines have', () =>
    withFile(async (path) => {
      const [other, broken] = [digestOf('other'), `ada:sha256:${digestOf('ada')}:colour=red`];
      await writeFile(path, `${broken}\nnonsense\nada:sha256:${other}\nzoe:sha256:${other.toUpperCase()}\n`);
      const { code, stderr } = await runCommand(['keys', 'revoke', 'ada', path]);
      expect([code, stderr]).toEqual([0, expect.stringContaining('fault  line 1: must begin with name:sha256:')]);
      expect(stderr).toContain('also in the line of zoe');
      expect(await readFile(path, 'utf8')).toBe(`nonsense\nzoe:sha256:${other.toUpperCase()}\n`);
    }));

  it('lose no line when ten commands add keys at the same time', () =>
    withFile(async (path) => {
      const names = Array.from({ length: 10 }, (_, index) => `n${index}`);
      const results = await Promise.all(names.map((name) => runCommand(['keys', 'add', name, path])));
      expect(results.map(({ code }) => code)).toEqual(names.map(() => 0));
      const text = await readFile(path, 'utf8');
      for (const [index, name] of names.entries())
        expect(text).toContain(`${name}:sha256:${digestOf(results[index]?.stdout.trim() ?? '')}\n`);
      expect(text.startsWith(`${started}\n`)).toBe(true);
      expect(text.split('\n')).toHaveLength(started.split('\n').length + 11);
    }));
});

describe('keys import', () => {
  it('copies the lines of another keys file unchanged', () =>
    withFile(async (path, folder) => {
      const from = join(folder, 'from');
      await writeFile(from, `# others\n\nzoe:sha256:${digestOf('zoe')}:weight=2\r\nmax:sha256:${digestOf('max')}\n`);
      const { code, stderr } = await runCommand(['keys', 'import', from, path]);
      expect([code, stderr]).toEqual([0, expect.stringContaining('2 keys added to ')]);
      const lines = `zoe:sha256:${digestOf('zoe')}:weight=2\nmax:sha256:${digestOf('max')}\n`;
      expect(await readFile(path, 'utf8')).toBe(`${started}\n${lines}`);
      expect((await runCommand(['keys', 'import', from, path])).code).toBe(78);
      expect((await runCommand(['keys', 'import', from, path, '--weight', '3'])).stderr).toContain(
        'already contain their options',
      );
    }));

  it('hashes keys in clear text, with the options of the flags, and prints none', () =>
    withFile(async (path) => {
      const input = '# from elsewhere\nzoe a-secret-of-zoe\nmax another-secret\n';
      const result = await runCommand(['keys', 'import', '-', path, '--rate', '9/1', '--json'], { input });
      expect([result.code, JSON.parse(result.stdout)]).toEqual([0, { imported: 2 }]);
      const text = await readFile(path, 'utf8');
      expect(text).toContain(`zoe:sha256:${digestOf('a-secret-of-zoe')}:rate=9/1\n`);
      expect(text + result.stderr).not.toMatch(/secret/);
      for (const [bad, reason] of [
        ['zoe2 short', 'fewer than 8 characters'],
        ['', 'contains no key'],
        ['one two three-secret', 'words'],
      ] as const) {
        const refused = await runCommand(['keys', 'import', '-', path], { input: bad });
        expect([refused.code, refused.stderr]).toEqual([78, expect.stringContaining(reason)]);
        expect(refused.stderr).not.toMatch(/short$|secret/m);
      }
    }));
});

it('A running service applies an edited keys file at once: a new key, a rotated one, a revoked one', async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, 'keys');
  const root = (await runCommand(['keys', 'add', 'root', path, '--scopes', 'admin'])).stdout.trim();
  await using service = await startService({ env: { MODEL_API_KEYS_FILE: path } });
  const ada = (await runCommand(['keys', 'add', 'ada', path])).stdout.trim();
  const client = async (key: string) => clientOf(service, key);
  await until(async () => (await client(ada)) === 'ada', 'the new key to work');
  const args = ['keys', 'rotate', 'ada', path, '--old-until', '2099-01-31'];
  const next = (await runCommand(args)).stdout.trim();
  await until(async () => (await client(next)) === 'ada', 'the rotated key to work');
  expect(await client(ada)).toBe('ada'); // the old key works until that day
  await runCommand(['keys', 'rotate', 'ada', path]);
  await until(async () => (await client(ada)) === null && (await client(next)) === null, 'old keys to be refused');
  await runCommand(['keys', 'revoke', 'root', path]);
  await until(async () => (await client(root)) === null, 'the revoked key to be refused');
});

it('The last line of an edit and of a check says whether the running service uses the file', async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, 'keys');
  const lastLine = async (words: readonly string[], env: Readonly<Record<string, string>>) => {
    const { code, stderr } = await runCommand(['keys', ...words], { env });
    return [code, stderr.trimEnd().split('\n').at(-1)];
  };
  const nowhere = { MODEL_API_PORT: '9' };
  const answer = 'No service answers at http://127.0.0.1:9: it reads the file when it starts.';
  expect(await lastLine(['add', 'root', path], nowhere)).toEqual([0, answer]);
  await using service = await startService({ env: { MODEL_API_KEYS_FILE: path } });
  const env = envFor(service);
  const subject = `The service at http://127.0.0.1:${service.port}`;
  const isUsed = `${subject} uses this file.`;
  for (const words of [
    ['add', 'ada'],
    ['rotate', 'ada'],
    ['budget', 'ada', '--tokens', '9/day'],
    ['revoke', 'ada'],
  ])
    expect(await lastLine([...words, path], env)).toEqual([0, isUsed]);
  expect(await lastLine(['check', path], env)).toEqual([0, isUsed]);
  await writeFile(path, `${await readFile(path, 'utf8')}nonsense\n`);
  const hasFault = `${subject} uses this file except for 1 fault, which its log names (keys_rejected).`;
  expect(await lastLine(['add', 'bob', path], env)).toEqual([0, hasFault]);
  expect(await lastLine(['check', path], env)).toEqual([78, hasFault]);
  const health = await service.get('/health');
  expect(health.body.files).toEqual([expect.objectContaining({ name: 'keys_file', faults: 1 })]);
  const other = join(folder.path, 'other');
  await writeFile(other, `eve:sha256:${digestOf('eve')}\n`);
  const { atime, mtime } = await stat(path);
  await utimes(other, atime, mtime); // as with "cp -p"
  const isOther = `${subject} does not use this file: it has another MODEL_API_KEYS_FILE, or cannot read it`;
  expect(await lastLine(['check', other], env)).toEqual([0, expect.stringContaining(isOther)]);
  await using without = await startService();
  const reads = 'reads no such file: name this one in MODEL_API_KEYS_FILE, and start the service again.';
  expect(await lastLine(['check', other], envFor(without))).toEqual([0, expect.stringContaining(reads)]);
});

/** Returns the name of the key's client; null if the key is refused. */
async function clientOf(service: Service, key: string): Promise<string | null> {
  const { status, body } = await service.get('/usage', { 'x-api-key': key });
  return status === 200 ? (body.caller as { client: string }).client : null;
}

import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runCommand } from '../../support/command.js';
import { temporaryFolder } from '../../support/folder.js';

const digestOf = (key: string) => createHash('sha256').update(key).digest('hex');

describe('keys new', () => {
  it('prints a key, and the line that lets it in', async () => {
    const { code, stdout, stderr } = await runCommand(['keys', 'new', 'ada']);
    const [key = '', line] = stdout.split('\n');
    expect([code, stderr]).toEqual([0, expect.stringContaining('it is shown this once')]);
    expect(key).toMatch(/^pr_[A-Za-z0-9_-]{32}$/);
    expect(line).toBe(`ada:sha256:${digestOf(key)}`);
  });

  it('takes options, as the keys file writes them', async () => {
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
    [[], 'say new, list or check'],
    [['make', 'ada'], 'say new, list or check'],
  ])('is refused: keys %j', async (words, message) => {
    const { code, stdout, stderr } = await runCommand(['keys', ...words]);
    expect([code, stdout]).toEqual([64, '']);
    expect(stderr).toContain(message);
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

  it('find in check what the service would find', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'keys');
    await writeFile(path, `ada:sha256:${digestOf('ada')}\nbob\n`);
    const { code, stderr } = await runCommand(['check'], { env: { MODEL_API_CLI: 'demo', MODEL_API_KEYS_FILE: path } });
    expect([code, stderr]).toEqual([78, 'fault  MODEL_API_KEYS_FILE: line 2: must begin with name:sha256:\n']);
  });
});

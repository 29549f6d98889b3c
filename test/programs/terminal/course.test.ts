import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf } from '../../../src/shared/config/api-keys.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { commandProgram, envFor, runCommand } from '../../support/clients/command.js';
import { keyOf } from '../../support/doors/named-keys.js';
import { type Service, startService } from '../../support/service/service.js';

let folder: TemporaryFolder;
let [keys, roster, sheet] = ['', '', ''];

beforeEach(async () => {
  folder = await temporaryFolder();
  [keys, roster, sheet] = ['keys', 'people.csv', 'sheet.csv'].map((name) => join(folder.path, name)) as [
    string,
    string,
    string,
  ];
  await writeFile(keys, `# the lab\noperator:sha256:${digestOf(keyOf('operator'))}:scopes=ask+admin\n`, {
    mode: 0o640,
  });
  await writeFile(roster, 'login;name\nada;Ada Lovelace\nben@example.org;=Ben\n');
});
afterEach(() => folder[Symbol.asyncDispose]());

const course = (args: readonly string[], env: Record<string, string> = {}, input = '') =>
  runCommand(['course', ...args], { env, input });
const add = (...args: readonly string[]) =>
  course([
    'add',
    'bio101',
    keys,
    '--until',
    '2099-07-15',
    '--roster',
    roster,
    '--sheet',
    sheet,
    '--each',
    'tokens=5/week',
    ...args,
  ]);
const linesOf = async (path: string) => (await readFile(path, 'utf8')).split(/\r?\n/).slice(0, -1);
const names = async () => (await linesOf(keys)).flatMap((line) => /^(bio101-[^:]+):/.exec(line)?.[1] ?? []);

describe('prompt-relay course add', () => {
  it('writes a group with its keys, and each key to a sheet that only the user can read', async () => {
    const { code, stdout, stderr } = await add('--models', 'mock');
    expect([code, stdout]).toEqual([0, '']);
    expect(stderr).toContain('The course bio101 is new in');
    const [, , group, ...members] = await linesOf(keys);
    expect(group).toBe('@bio101 expires=2099-07-15 models=mock each=tokens:5/week');
    const [head, ...rows] = (await linesOf(sheet)).map((line) => line.split(','));
    expect(head).toEqual(['login', 'name', 'course', 'key_name', 'key', 'service']);
    expect(rows.map(([login, name]) => [login, name])).toEqual([
      ['ada', 'Ada Lovelace'],
      ['ben@example.org', "'=Ben"],
    ]);
    expect(members).toEqual(rows.map((row) => `${row[3]}:sha256:${digestOf(row[4] ?? '')}:group=bio101`));
    expect([(await stat(sheet)).mode & 0o777, (await stat(keys)).mode & 0o777]).toEqual([0o600, 0o640]);
    for (const [, , , , key = ''] of rows) expect(stderr + (await readFile(keys, 'utf8'))).not.toContain(key);
  });

  it('changes nothing if the roster has a fault, and names all of them', async () => {
    const before = await readFile(keys);
    await writeFile(roster, 'login;name\nada;Ada\nADA;Twice\nb en;Ben\n;Nobody\n');
    const { code, stderr } = await add();
    expect(code).toBe(78);
    for (const line of [3, 4, 5]) expect(stderr).toContain(`line ${line}: `);
    expect(stderr).toContain('has 3 faults. Nothing was changed.');
    expect([await readFile(keys), await readdir(folder.path)]).toEqual([before, ['keys', 'people.csv']]);
  });

  it('changes nothing in a trial', async () => {
    const before = await readFile(keys);
    const { code, stdout } = await add('--dry-run', '--json');
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { is_new: true, dry_run: true, staying: [], absent: [] }]);
    expect([await readFile(keys), await readdir(folder.path)]).toEqual([before, ['keys', 'people.csv']]);
  });

  it('never replaces a file by its sheet', async () => {
    await writeFile(sheet, 'of another');
    const before = await readFile(keys);
    const { code, stderr } = await add();
    expect([code, await readFile(sheet, 'utf8'), await readFile(keys)]).toEqual([78, 'of another', before]);
    expect(stderr).toContain('it already exists: choose another file with --sheet');
  });

  it('adds new people to a course, keeps the others, and removes the absent ones if told to', async () => {
    await add();
    const before = await linesOf(keys);
    await writeFile(roster, 'ada\ncleo\n');
    const second = join(folder.path, 'second.csv');
    const { stderr } = await course(['add', 'bio101', keys, '--roster', roster, '--sheet', second]);
    expect(stderr).toMatch(/Added: 1 member\. Already there: 1\.\s+Not on the roster: bio101-ben-[0-9a-f]{10}\./);
    expect((await linesOf(keys)).slice(0, -1)).toEqual(before);
    expect((await linesOf(second)).map((line) => line.split(',')[0])).toEqual(['login', 'cleo']);
    await course(['add', 'bio101', keys, '--roster', roster, '--remove-absent', '--each', 'tokens=9/week']);
    expect(await names()).toEqual(['bio101-ada', 'bio101-cleo']);
    expect((await linesOf(keys))[2]).toBe('@bio101 expires=2099-07-15 each=tokens:9/week');
  });

  it('leaves the old or the new keys file wherever it is killed', async () => {
    const before = await readFile(keys, 'utf8');
    const results: string[] = [];
    for (const [index, point] of ['fsync:when=1', 'fsync:when=2', 'rename:when=1', 'fsync:when=3'].entries()) {
      await writeFile(keys, before);
      const own = join(folder.path, `sheet-${index}`);
      const args = ['course', 'add', 'bio101', keys, '--until', '2099-07-15', '--roster', roster, '--sheet', own];
      const inject = `inject=${point.replace(':', ':signal=KILL:')}`;
      const traced = ['-f', '-qq', '-o', '/dev/null', '-e', inject, process.execPath, commandProgram, ...args];
      // strace counts the calls of each thread by itself, so only one thread may write.
      const env = { PATH: process.env.PATH ?? '', HOME: '/nonexistent', UV_USE_IO_URING: '0', UV_THREADPOOL_SIZE: '1' };
      await once(spawn('strace', traced, { env, stdio: 'ignore' }), 'exit');
      const after = await readFile(keys, 'utf8');
      results.push(after === before ? 'old' : `${(await names()).length} new`);
      const written = (await linesOf(own)).slice(1).map((line) => digestOf(line.split(',')[4] ?? ''));
      for (const [digest] of after.slice(before.length).matchAll(/\b[0-9a-f]{64}\b/g))
        expect(written).toContain(digest);
    }
    expect([results[0], results[1], results.at(-1)]).toEqual(['old', 'old', '2 new']);
    expect(['old', '2 new']).toContain(results[2]);
  });

  it.each([
    [['add'], 'name the course'],
    [['add', 'a b'], 'name the course'],
    [['add', 'bio101', '--until', '2020-01-01'], '--until 2020-01-01 is over'],
    [['add', 'bio101', '--until', 'soon'], '--until must be a day'],
    [['add', 'bio101', '--each', '5'], '--each must be a limit'],
    [['add', 'bio101', '--remove-absent'], '--remove-absent needs the --roster'],
    [['end', 'bio101', '--each', 'tokens=5/day'], '--each has no meaning here'],
    [['limit', 'bio101'], 'name the member'],
    [['make'], 'the action must be add'],
  ])('is rejected: course %j', async (args, message) => {
    const { code, stderr } = await course(args, { MODEL_API_KEYS_FILE: keys });
    expect([code, stderr]).toEqual([64, expect.stringContaining(message)]);
  });
});

describe('prompt-relay course', () => {
  let service: Service;
  const admin = () => ({ ...envFor(service), MODEL_API_KEY: keyOf('operator') });
  const teacher = () => ({ ...envFor(service), MODEL_API_KEY: keyOf('prof') });

  beforeEach(async () => {
    await writeFile(keys, `prof:sha256:${digestOf(keyOf('prof'))}:admin=@bio101\n`, { flag: 'a' });
    service = await startService({
      env: { MODEL_API_KEYS_FILE: keys, MODEL_API_STATE_FOLDER: join(folder.path, 'state') },
    });
  });
  afterEach(() => service.stop());

  it('is made, listed, reported and ended, and its keys are refused at once', async () => {
    const added = await course(
      [
        'add',
        'bio101',
        keys,
        '--until',
        '2099-07-15',
        '--roster',
        roster,
        '--sheet',
        sheet,
        '--each',
        'tokens=500000/week',
      ],
      admin(),
    );
    expect(added.stderr).toContain('uses');
    const key = (await linesOf(sheet))[1]?.split(',')[4] ?? '';
    const ask = () => service.post('/ask', { prompt: 'Hello' }, { 'x-api-key': key });
    expect((await ask()).status).toBe(200);
    expect((await course(['list'], admin())).stdout).toMatch(/^bio101 +2 +2099-07-15 .* each=tokens:500000\/week$/m);
    const report = await course(['report', 'bio101'], teacher());
    expect(report.stdout).toMatch(/^bio101,bio101-ada,key bio101-ada,1,0,\d+,[\d.]+,,false$/m);
    const ended = await course(['end', 'bio101', keys], admin());
    expect(ended.stderr).toContain("prompt-relay store purge --client 'key bio101-ada'");
    expect((await ask()).status).toBe(401);
    expect((await course(['report', 'bio101'], teacher())).stdout).toContain('bio101-ada');
    await course(['end', 'bio101', keys, '--remove'], admin());
    expect((await linesOf(keys)).some((line) => /bio101/.test(line) && !line.startsWith('prof'))).toBe(false);
  });

  it('lets a teacher add, limit and remove people', async () => {
    await course(['add', 'bio101', keys, '--until', '2099-07-15'], admin());
    const enrolled = await course(['enrol', 'bio101', '--roster', '-', '--sheet', sheet], teacher(), 'eve,Eve\n');
    expect([enrolled.code, enrolled.stderr]).toEqual([0, expect.stringContaining('Added: 1 member.')]);
    expect((await linesOf(sheet))[1]).toMatch(/^eve,Eve,bio101,bio101-eve,pr_/);
    expect((await stat(sheet)).mode & 0o777).toBe(0o600);
    const limited = await course(['limit', 'bio101', 'bio101-eve', '--tokens', '5/day'], teacher());
    expect(limited.stdout).toBe('bio101-eve: tokens=5/day\n');
    expect((await course(['remove', 'bio101', 'bio101-eve'], teacher())).code).toBe(0);
    expect((await course(['report', 'bio101'], teacher())).stdout).toMatch(/^bio101,bio101-eve,made .*,true$/m);
    const again = await course(['enrol', 'bio101', '--roster', '-', '--sheet', sheet], teacher(), 'eve\n');
    expect([again.code, again.stderr]).toEqual([78, expect.stringContaining('it already exists')]);
  });
});

import { appendFile, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AuditLog } from '../../../../src/features/audit/audit-log.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { type TemporaryFolder, temporaryFolder } from '../../../support/basics/folder.js';
import { LogBook } from '../../../support/basics/log-book.js';

let folder: TemporaryFolder;
let path: string;
beforeEach(async () => {
  folder = await temporaryFolder();
  path = join(folder.path, 'audit.jsonl');
});
afterEach(() => folder[Symbol.asyncDispose]());

const entry = (target: string) => ({ act: 'key_made', by: 'key root', target, request_id: 'r' }) as const;
const createLog = (at: string | null) => new AuditLog(at, new FakeClock(), new LogBook());
const targets = async (log: AuditLog, limit = 10) => (await log.list(limit)).map(({ target }) => target);

describe('The audit log', () => {
  it('appends one line for each act to a private file, in their order', async () => {
    const log = createLog(path);
    await Promise.all(['a', 'b', 'c'].map((target) => log.recordAct(entry(target))));
    const lines = (await readFile(path, 'utf8')).trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toMatchObject(['a', 'b', 'c'].map(entry));
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(await targets(log, 2)).toEqual(['c', 'b']);
  });

  it('keeps what other programs have appended, and lists the records of an earlier service', async () => {
    await createLog(path).recordAct(entry('a'));
    const log = createLog(path);
    expect(await targets(log)).toEqual(['a']);
    await appendFile(path, 'a note of the operator\n');
    await log.recordAct(entry('b'));
    expect(await targets(log)).toEqual(['b', 'a']);
    expect(await targets(createLog(path))).toEqual(['b', 'a']);
  });

  it('begins a new line after one that was cut', async () => {
    await writeFile(path, '{"at":"2026-');
    await createLog(path).recordAct(entry('a'));
    expect((await readFile(path, 'utf8')).split('\n')[0]).toBe('{"at":"2026-');
    expect(await targets(createLog(path))).toEqual(['a']);
  });

  it('is in memory only if no file is configured', async () => {
    const log = createLog(null);
    for (let index = 0; index < 1001; index++) await log.recordAct(entry(`k${index}`));
    expect(await targets(log, 2)).toEqual(['k1000', 'k999']);
    expect(await log.list(2000)).toHaveLength(1000);
  });

  it('lists the acts of administrators, however often people change own keys', async () => {
    const own = (index: number) =>
      ({ act: 'key_rotated', by: 'sso eve', target: `sso eve/laptop~${index}`, request_id: 'r' }) as const;
    const listedFirst = async (log: AuditLog) => (await log.list(1000)).at(-1)?.target;
    const log = createLog(path);
    await log.recordAct(entry('first'));
    for (let index = 0; index < 1100; index++) await log.recordAct(own(index));
    expect(await log.list(2000)).toHaveLength(1000);
    expect(await listedFirst(log)).toBe('first');
    expect(await listedFirst(createLog(path))).toBe('first');
    for (let index = 0; index < 501; index++) await log.recordAct(entry(`k${index}`));
    const listed = (await log.list(1000)).map(({ by }) => by);
    expect(listed.filter((by) => by === 'sso eve')).toHaveLength(500);
    expect(await targets(log, 1)).toEqual(['k500']);
  });

  it.each([
    ['/dev/full', 'ENOSPC'],
    ['/proc/nothing/audit', 'ENOENT'],
    ['/', 'EISDIR'],
  ])('refuses the act if the record cannot be written: %s', async (at, code) => {
    const log = new LogBook();
    const audit = new AuditLog(at, new FakeClock(), log);
    await expect(audit.recordAct(entry('a'))).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(await audit.list(10)).toEqual([]);
    expect(log.entries).toMatchObject([{ event: 'audit_failed', fields: { error: code } }]);
  });

  it('works again when the file can be written again', async () => {
    const log = createLog(join(folder.path, 'logs', 'audit'));
    await expect(log.recordAct(entry('a'))).rejects.toMatchObject({ code: 'store_unavailable' });
    await mkdir(join(folder.path, 'logs'));
    await log.recordAct(entry('b'));
    expect(await targets(log)).toEqual(['b']);
  });
});

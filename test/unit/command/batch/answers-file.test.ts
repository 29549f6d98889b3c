import { execFileSync } from 'node:child_process';
import { lstat, readdir, readFile, readlink, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { AnswersFile } from '../../../../src/command/batch/answers-file.js';
import { systemClock } from '../../../../src/shared/clock.js';
import { temporaryFolder } from '../../../support/basics/folder.js';

const answered = '{"id":"a","line":1,"response":"x"}\n';
const failed = '{"id":"b","line":2,"error":{"code":"timeout","message":"x"}}\n';

async function withFile(text: string | null, work: (path: string) => Promise<void>): Promise<void> {
  await using folder = await temporaryFolder();
  const path = join(folder.path, 'answers.jsonl');
  if (text !== null) await writeFile(path, text);
  await work(path);
}

function open(path: string, forgetsFailures = false): Promise<AnswersFile> {
  return AnswersFile.open(path, systemClock, forgetsFailures);
}

/** Returns how many file descriptors of this process refer to the path. */
async function openFilesAt(path: string): Promise<number> {
  const fds = await readdir('/proc/self/fd');
  const targets = await Promise.all(fds.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')));
  return targets.filter((target) => target === path).length;
}

describe('The answers file of a batch', () => {
  it('is created for its owner only, and is continued at its end', () =>
    withFile(null, async (path) => {
      const file = await open(path);
      await Promise.all([file.writeRecord({ id: 'a', response: 'x' }), file.writeRecord({ id: 'b', error: {} })]);
      await file.close();
      expect((await stat(path)).mode & 0o777).toBe(0o600);
      const again = await open(path);
      expect(again).toMatchObject({ answered: 1, failed: 1, repaired: 0 });
      expect(['a', 'b', 'c'].map((id) => again.has(id))).toEqual([true, true, false]);
      await again.close();
    }));

  it.each(['{', '{"id', '{"id":"b","resp', '{"id":"b","response":"\ud83d'])(
    'is repaired if a killed batch left an unfinished line: %j',
    (torn) =>
      withFile(answered, async (path) => {
        await writeFile(path, answered + torn);
        const file = await open(path);
        expect(file).toMatchObject({ answered: 1, repaired: Buffer.byteLength(torn) });
        await file.writeRecord({ id: 'b', response: 'y' });
        await file.close();
        expect(await readFile(path, 'utf8')).toBe(`${answered}{"id":"b","response":"y"}\n`);
      }),
  );

  it('preserves a last line that lacks only its line feed', () =>
    withFile(answered.trim(), async (path) => {
      const file = await open(path);
      expect(file).toMatchObject({ answered: 1, repaired: 0 });
      await file.writeRecord({ id: 'b', response: 'y' });
      await file.close();
      expect(await readFile(path, 'utf8')).toBe(`${answered}{"id":"b","response":"y"}\n`);
    }));

  it('is repaired if its unfinished first line can only be from a batch', () =>
    withFile('{"id":"a\\"","line":1,"respon', async (path) => {
      const file = await open(path);
      expect(file).toMatchObject({ answered: 0, repaired: 28 });
      await file.close();
      expect(await readFile(path, 'utf8')).toBe('');
    }));

  it.each([
    '{"id":"a","prompt":"x"}\n',
    '{"id":"a","prompt":"x"}',
    '{"id":"a","prompt":"x',
    '{"id":7}',
    '{',
    `${answered}{"id":"my own"}`,
    'my only copy',
    `${answered}notes\n${answered}`,
    '\u0000\u0001',
  ])('is rejected and unchanged if it is another file: %j', (text) =>
    withFile(text, async (path) => {
      await expect(open(path)).rejects.toThrow(/line \d of .*answers.jsonl is not an answer of a batch/);
      expect(await readFile(path, 'utf8')).toBe(text);
    }),
  );

  it('drops its failures if they are retried, and nothing else', () =>
    withFile(failed + answered + failed.replace('"b"', '"c"'), async (path) => {
      const file = await open(path, true);
      expect(['a', 'b', 'c'].map((id) => file.has(id))).toEqual([true, false, false]);
      await file.writeRecord({ id: 'b', response: 'y' });
      await file.close();
      expect(await readFile(path, 'utf8')).toBe(`${answered}{"id":"b","response":"y"}\n`);
    }));

  it('does not follow a planted link at the path of its draft', () =>
    withFile(failed + answered, async (path) => {
      const [foreign, draft] = [`${path}.foreign`, join(dirname(path), '.answers.jsonl.retry')];
      await writeFile(foreign, 'mine');
      await symlink(foreign, draft);
      await (await open(path, true)).close();
      expect(await readFile(foreign, 'utf8')).toBe('mine');
      expect(await readFile(path, 'utf8')).toBe(answered);
      expect((await lstat(path)).isFile()).toBe(true);
    }));

  it('replaces the draft of a killed batch', () =>
    withFile(failed + answered, async (path) => {
      await writeFile(join(dirname(path), '.answers.jsonl.retry'), 'a part');
      await (await open(path, true)).close();
      expect(await readFile(path, 'utf8')).toBe(answered);
    }));

  it('must be a regular file: anything else is rejected at once', () =>
    withFile(null, async (path) => {
      execFileSync('mkfifo', [path]);
      await expect(open(path)).rejects.toThrow('is not a regular file');
      await expect(open('/dev/null')).rejects.toThrow('is not a regular file');
    }));

  it('is written by one batch at a time', () =>
    withFile(null, async (path) => {
      const file = await open(path);
      await expect(open(path)).rejects.toThrow('another batch writes to');
      expect(await openFilesAt(path)).toBe(1); // that of the other batch
      await file.close();
      await (await open(path)).close();
    }));
});

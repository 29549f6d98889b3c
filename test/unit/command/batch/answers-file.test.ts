import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AnswersFile } from '../../../../src/command/batch/answers-file.js';
import { systemClock } from '../../../../src/shared/clock.js';
import { temporaryFolder } from '../../../support/folder.js';

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

describe('The file with the answers', () => {
  it('is made for its owner alone, and goes on where it ended', () =>
    withFile(null, async (path) => {
      const file = await open(path);
      await Promise.all([file.write({ id: 'a', response: 'x' }), file.write({ id: 'b', error: {} })]);
      await file.close();
      expect((await stat(path)).mode & 0o777).toBe(0o600);
      const again = await open(path);
      expect(again).toMatchObject({ answered: 1, failed: 1, repaired: 0 });
      expect(['a', 'b', 'c'].map((id) => again.has(id))).toEqual([true, true, false]);
      await again.close();
    }));

  it.each(['{', '{"id', '{"id":"b","resp', '{"id":"b","response":"\ud83d'])(
    'loses the line that a killed batch left unfinished: %j',
    (torn) =>
      withFile(answered, async (path) => {
        await writeFile(path, answered + torn);
        const file = await open(path);
        expect(file).toMatchObject({ answered: 1, repaired: Buffer.byteLength(torn) });
        await file.write({ id: 'b', response: 'y' });
        await file.close();
        expect(await readFile(path, 'utf8')).toBe(`${answered}{"id":"b","response":"y"}\n`);
      }),
  );

  it('keeps a last line that lacks only its line feed', () =>
    withFile(answered.trim(), async (path) => {
      const file = await open(path);
      expect(file).toMatchObject({ answered: 1, repaired: 0 });
      await file.write({ id: 'b', response: 'y' });
      await file.close();
      expect(await readFile(path, 'utf8')).toBe(`${answered}{"id":"b","response":"y"}\n`);
    }));

  it.each(['{"id":"a","prompt":"x"}\n', 'my only copy', `${answered}notes\n${answered}`, '\u0000\u0001'])(
    'is no other file: nothing of one is removed: %j',
    (text) =>
      withFile(text, async (path) => {
        await expect(open(path)).rejects.toThrow(/line \d of .*answers.jsonl is no answer of a batch/);
        expect(await readFile(path, 'utf8')).toBe(text);
      }),
  );

  it('loses its failures where they are to be asked again, and nothing else', () =>
    withFile(failed + answered + failed.replace('"b"', '"c"'), async (path) => {
      const file = await open(path, true);
      expect(['a', 'b', 'c'].map((id) => file.has(id))).toEqual([true, false, false]);
      await file.write({ id: 'b', response: 'y' });
      await file.close();
      expect(await readFile(path, 'utf8')).toBe(`${answered}{"id":"b","response":"y"}\n`);
    }));

  it('is written by one batch at a time', () =>
    withFile(null, async (path) => {
      const file = await open(path);
      await expect(open(path)).rejects.toThrow('another batch writes to');
      await file.close();
      await (await open(path)).close();
    }));
});

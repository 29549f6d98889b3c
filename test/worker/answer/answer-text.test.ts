import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AnswerText } from '../../../src/worker/answer/answer-text.js';
import { type SpillFile, SpillFolder } from '../../../src/worker/answer/spill-folder.js';
import { LogBook } from '../../support/log-book.js';

/** Holds what JSON escapes, two and three bytes long characters, and a pair of surrogates. */
const line = '"quoted" \\ tab\t \u2028 ü € 😀 \u0000\n';
const long = line.repeat(4000);

async function folder() {
  const path = await mkdtemp(join(tmpdir(), 'prompt-relay-spill-'));
  const log = new LogBook();
  const remove = () => rm(path, { recursive: true, force: true });
  return { path, log, spill: new SpillFolder(path, log), [Symbol.asyncDispose]: remove };
}

async function joined(pieces: AsyncIterable<string | Buffer>): Promise<Buffer> {
  const all: Buffer[] = [];
  for await (const piece of pieces) all.push(Buffer.from(piece));
  return Buffer.concat(all);
}

/** In pieces of this many UTF-16 units, cut wherever it falls. */
async function addAll(text: AnswerText, whole: string, size: number): Promise<void> {
  for (let at = 0; at < whole.length; at += size) await text.add(whole.slice(at, at + size));
}

describe('The text of an answer', () => {
  it('stays in memory where it is short', async () => {
    await using house = await folder();
    await using text = new AnswerText({ file: () => Promise.reject(new Error('no file is needed')) });
    await addAll(text, line, 3);
    expect(JSON.parse(`"${text.short}"`)).toBe(line);
    expect(house.log.entries).toEqual([]);
  });

  it.each([1000, 16 * 1024, 200_000])(
    'is written to a file where it is long, and read from there: pieces of %d',
    async (size) => {
      await using house = await folder();
      await using text = new AnswerText(house.spill);
      await addAll(text, long, size);
      expect(text.short).toBeNull();
      const written = await joined(text.pieces());
      expect(written.length).toBe(text.bytes);
      expect(JSON.parse(`"${written}"`)).toBe(long);
      expect(await joined(text.pieces())).toEqual(written);
    },
  );

  it('is another one where the model CLI corrects itself, and leaves nothing of the first', async () => {
    await using house = await folder();
    for (const [first, second] of [
      [long, `${long}!`],
      [long, 'short'],
      ['short', long],
    ] as const) {
      await using text = new AnswerText(house.spill);
      await addAll(text, first, 5000);
      await text.replace(second);
      expect(JSON.parse(`"${await joined(text.pieces())}"`)).toBe(second);
    }
  });

  it('stays in memory from where the disk takes no more', async () => {
    await using house = await folder();
    let left = 2;
    const filling = async () => {
      const file = (await house.spill.file()) as SpillFile;
      const append = file.append.bind(file);
      file.append = async (bytes) => left-- > 0 && append(bytes);
      return file;
    };
    await using text = new AnswerText({ file: filling });
    await addAll(text, long, 5000);
    expect(JSON.parse(`"${await joined(text.pieces())}"`)).toBe(long);
    expect(left).toBe(-1); // it has been tried once more, and then no more
  });
});

describe('A folder for long answers', () => {
  it('shows no file, and holds none open longer than its answer', async () => {
    await using house = await folder();
    const file = (await house.spill.file()) as SpillFile;
    await file.append(Buffer.from('secret'));
    expect(await readdir(house.path)).toEqual([]);
    await file.close();
    await expect(joined(file.pieces(10))).rejects.toThrow();
  });

  it('that is not there is told once in the log, and again after a success', async () => {
    const { path, log, spill, ...house } = await folder();
    const gone = new SpillFolder(join(path, 'gone'), log);
    expect([await gone.file(), await gone.file()]).toEqual([null, null]);
    expect(log.entries).toEqual([{ level: 'warn', event: 'answer_not_spilled', fields: { error: 'ENOENT' } }]);
    gone.tell(null);
    await gone.file();
    expect(log.entries).toHaveLength(2);
    await house[Symbol.asyncDispose]();
  });
});

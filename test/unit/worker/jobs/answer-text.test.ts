import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { storedBody } from '../../../../src/features/background/answers.js';
import { AnswerText, type SpillFile, SpillFolder } from '../../../../src/worker/jobs/answer-text.js';
import { LogBook } from '../../../support/basics/log-book.js';
import { answerInPieces, backgroundView } from '../../../support/jobs/background-view.js';
import { FakePrimary } from '../../../support/jobs/fake-primary.js';
import { jobDone, plainForm } from '../../../support/jobs/job-records.js';

/** Contains characters that JSON escapes, characters of two and three bytes, and a surrogate pair. */
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

/** Adds a text in pieces of this many UTF-16 units, cut at any position. */
async function addAll(text: AnswerText, whole: string, size: number): Promise<void> {
  for (let at = 0; at < whole.length; at += size) await text.addText(whole.slice(at, at + size));
}

describe('The text of an answer', () => {
  it('stays in memory if it is short', async () => {
    await using house = await folder();
    await using text = new AnswerText({ file: () => Promise.reject(new Error('no file is needed')) });
    await addAll(text, line, 3);
    expect(JSON.parse(`"${text.short}"`)).toBe(line);
    expect(house.log.entries).toEqual([]);
  });

  it.each([1000, 16 * 1024, 200_000])(
    'is written to a file if it is long, and read from there: pieces of %d',
    async (size) => {
      await using house = await folder();
      await using text = new AnswerText(house.spill);
      await addAll(text, long, size);
      expect(text.short).toBeNull();
      const written = await joined(text.pieces());
      expect(written.length).toBe(await text.length());
      expect(JSON.parse(`"${written}"`)).toBe(long);
      expect((await joined(text.pieces())).equals(written)).toBe(true);
    },
  );

  it('is replaced if the model CLI corrects itself, without a trace of the first', async () => {
    await using house = await folder();
    const cases = [[long, `${long}!`] as const, [long, 'short'] as const, ['short', long] as const];
    for (const [first, second] of cases) {
      await using text = new AnswerText(house.spill);
      await addAll(text, first, 5000);
      await text.replace(second);
      expect(JSON.parse(`"${await joined(text.pieces())}"`)).toBe(second);
    }
  });

  it('stays in memory once the disk is full', async () => {
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
    expect(left).toBe(-1); // tried once more, then never again
  });
});

function chatOf(text: string) {
  return { success: true, response: text, message: { role: 'assistant', content: text }, model: 'eliza' };
}

describe('The body of an answer', () => {
  it.each<[string, string]>([
    ['short', line],
    ['long', line.repeat(4000)],
  ])('is the JSON of the same body with the text inserted: %s', async (_, whole) => {
    await using house = await folder();
    await using text = new AnswerText(house.spill);
    await addAll(text, whole, 5000);
    const body = text.body({ isStructured: false, cuts: [] }, (mark) => JSON.stringify(chatOf(mark)));
    const written = await joined(body.pieces());
    expect(written.length).toBe(await body.length());
    expect(JSON.parse(written.toString())).toEqual(chatOf(whole));
    expect(body.short).toBe(whole === line ? written.toString() : null);
  });

  it.each([5, 4000])('has the slices of its text, wherever the pieces are split: %d lines', async (lines) => {
    const whole = `${line}😀\n`.repeat(lines);
    const cuts = [1, whole.length - 20, whole.length - 3];
    await using house = await folder();
    await using text = new AnswerText(house.spill);
    await addAll(text, whole, 997);
    const body = text.body({ isStructured: false, cuts }, (all, _, slices) => JSON.stringify({ all, slices }));
    const written = await joined(body.pieces());
    const slices = [0, ...cuts].map((from, index) => whole.slice(from, cuts[index]));
    expect(JSON.parse(written.toString())).toEqual({ all: whole, slices });
    expect(await body.length()).toBe(written.length);
    expect(body.short).toBe(lines === 5 ? written.toString() : null);
  });

  it.each([1, 1000, 32 * 1024 - 3, 200_000])(
    'has the value of a long text unchanged, wherever it is split: pieces of %d',
    async (size) => {
      const value = JSON.stringify({ text: `${line}😀\\`.repeat(size === 1 ? 1500 : 4000) }, null, 1);
      await using house = await folder();
      await using text = new AnswerText(house.spill);
      await addAll(text, value, size);
      const body = text.body({ isStructured: true, cuts: [] }, (_, mark) => JSON.stringify({ structured: mark }));
      expect(body.short).toBeNull();
      const written = await joined(body.pieces());
      expect(written.toString()).toBe(`{"structured":${value.replaceAll('\n', ' ')}}`);
      expect(await body.length()).toBe(written.length);
    },
  );
});

describe('A folder for long answers', () => {
  it('contains no visible file, and each file is closed with its answer', async () => {
    await using house = await folder();
    const file = (await house.spill.file()) as SpillFile;
    await file.append(Buffer.from('secret'));
    expect(await readdir(house.path)).toEqual([]);
    await file.closeFile();
    await expect(joined(file.pieces())).rejects.toThrow();
  });

  it('that is missing is logged once, and again after a success', async () => {
    await using house = await folder();
    const gone = new SpillFolder(join(house.path, 'gone'), house.log);
    expect([await gone.file(), await gone.file()]).toEqual([null, null]);
    expect(house.log.entries).toEqual([{ level: 'warn', event: 'answer_not_spilled', fields: { error: 'ENOENT' } }]);
    gone.report(null);
    await gone.file();
    expect(house.log.entries).toHaveLength(2);
  });
});

const client = 'key ada';
const end = jobDone({ model: 'eliza' });

type Write = Parameters<typeof storedBody>[3];

async function stored(text: string, write: Write, { length, isStructured = false }: StoredAs = {}) {
  const primary = new FakePrimary({ jobAnswer: answerInPieces(text, end, length) });
  const job = backgroundView({ form: { ...plainForm, isStructured } });
  return { primary, body: await storedBody(primary.asPrimary, job, client, write) };
}

interface StoredAs {
  readonly length?: number;
  readonly isStructured?: boolean;
}

describe('The answer of a background job', () => {
  it.each<[string, string, number]>([
    ['short', line, 5],
    ['long', line.repeat(4000), 16_000],
  ])('is inserted as often as the body contains it, for any size of the pieces: %s', async (name, text, length) => {
    const write: Write = ({ text: mark, end }) => JSON.stringify({ text: mark, again: [mark], end });
    const { body } = await stored(text, write, { length });
    expect(JSON.parse((await joined(body.pieces())).toString())).toEqual({ text, again: [text], end });
    expect(body.short === null).toBe(name === 'long');
    expect((await body.length()) === null).toBe(name === 'long');
    if (body.short !== null) expect(JSON.parse(body.short)).toEqual({ text, again: [text], end });
  });

  it('is read from the store while it is sent, in parts', async () => {
    const { primary, body } = await stored('x'.repeat(10_000_000), ({ text }) => JSON.stringify({ text }));
    expect(primary.calls.length).toBe(3);
    let count = 0;
    for await (const _ of body.pieces()) if (++count === 10) break;
    expect(primary.calls.length).toBeLessThan(13);
    expect(primary.calls.at(-1)?.request).toMatchObject({ id: 'some-id', client });
  });

  it.each<[string, string]>([
    ['short', '{\n  "a": [1,\r\n 2, "\\n"]\n}'],
    ['long', `{"a": [\n${Array.from({ length: 20_000 }, (_, index) => `"${index}"`).join(',\n')}]}`],
  ])('of a job with a schema is also the value, on one line: %s', async (_, json) => {
    const write: Write = ({ text, value }) => JSON.stringify({ text, structured: value });
    const { body } = await stored(json, write, { length: 1000, isStructured: true });
    const all = (await joined(body.pieces())).toString();
    expect(JSON.parse(all)).toEqual({ text: json, structured: JSON.parse(json) });
    expect(all).not.toMatch(/[\r\n]/);
  });

  it('has no value if the model returned none', async () => {
    const write: Write = ({ text, value }) => JSON.stringify({ text, value });
    const { body } = await stored('', write, { isStructured: true });
    expect(body.short).toBe('{"text":""}');
  });
});

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { LearnedSizes } from '../../../../src/primary/cli/model-sizes.js';
import { temporaryFolder } from '../../../support/basics/folder.js';
import { LogBook } from '../../../support/basics/log-book.js';

const opus = { cli: { name: 'claude' }, model: 'opus' };
const sizes = { maxInputTokens: 200_000, maxOutputTokens: null };

describe('The sizes of models', () => {
  it('survive a restart, and the newest report counts', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'state', 'model-sizes.json');
    const log = new LogBook();
    const first = new LearnedSizes(path, log);
    await first.load();
    first.recordSizes(opus, { maxInputTokens: 1, maxOutputTokens: 1 });
    first.recordSizes(opus, sizes);
    first.recordSizes({ ...opus, model: null }, { maxInputTokens: 5, maxOutputTokens: 6 });
    await first.untilWritten();
    const second = new LearnedSizes(path, log);
    await second.load();
    expect(second.sizesOf({ ...opus, model: null })).toMatchObject({ maxInputTokens: 5, maxOutputTokens: 6 });
    expect(second.sizesOf(opus)).toMatchObject(sizes);
    expect(second.sizesOf({ cli: { name: 'codex' }, model: 'opus' })).toBeNull();
    expect(log.events).toEqual([]);
  });

  it('keep a token factor beside them, also over a restart', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'model-sizes.json');
    const first = new LearnedSizes(path, new LogBook());
    first.recordFactor(opus, 1.3);
    first.recordFactor(opus, 1.31); // no more than a percent
    first.recordSizes(opus, sizes);
    await first.untilWritten();
    const second = new LearnedSizes(path, new LogBook());
    await second.load();
    expect([second.factorOf(opus), second.sizesOf(opus)]).toEqual([1.3, expect.objectContaining(sizes)]);
  });

  it('are bounded, and a broken file is like an empty one', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'model-sizes.json');
    await writeFile(path, '{"cli":');
    const learned = new LearnedSizes(path, new LogBook());
    await learned.load();
    for (let n = 0; n < 600; n++) learned.recordSizes({ ...opus, model: `opus-${n}` }, sizes);
    expect([learned.sizesOf({ ...opus, model: 'opus-99' }), learned.sizesOf({ ...opus, model: 'opus-100' })]).toEqual([
      null,
      expect.objectContaining(sizes),
    ]);
    await learned.untilWritten();
    expect(await readFile(path, 'utf8')).toContain('"opus-599"');
  });

  it('are reported in the log if they cannot be written', async () => {
    const log = new LogBook();
    const learned = new LearnedSizes('/proc/nowhere/model-sizes.json', log);
    learned.recordSizes(opus, sizes);
    await learned.untilWritten();
    expect(log.events).toEqual(['model_sizes_not_written']);
    expect(learned.sizesOf(opus)).toMatchObject(sizes);
  });
});

import { documentReader, withDocumentTexts } from '../../../../src/features/documents/document-texts.js';
import { plainLaunch } from '../../../../src/primary/cli/contract/adapter.js';
import { cliError } from '../../../../src/shared/errors.js';
import type { Attachment, FileDocument, Image } from '../../../../src/shared/job.js';
import { settled } from '../../../support/basics/settled.js';
import { all, endOf, jobHarness } from '../../../support/jobs/job-harness.js';

const image: Image = { mediaType: 'image/png', data: 'AAAA', at: 0 };
const acceptsImages = { image: (each: Image) => each };
const acceptsDocuments = { ...acceptsImages, document: (each: FileDocument) => each };

function pdf(name: string, at = 0): FileDocument {
  return { mediaType: 'application/pdf', data: 'JVBERi0=', digest: name, name, pages: 1, at };
}

function text(content: string, name = '', at = 0): FileDocument {
  return { mediaType: 'text/plain', data: Buffer.from(content).toString('base64'), digest: content, name, at };
}

describe('A document for a program that takes none', () => {
  it.each<[string, string, readonly Attachment[], string]>([
    ['a PDF', 'Sum up', [pdf('a.pdf')], '<document name="a.pdf">\ntext of a.pdf\n</document>\n\nSum up'],
    ['a text without a name', 'Sum up', [text('Hi\n')], '<document>\nHi\n</document>\n\nSum up'],
    ['no other text', '', [text('Hi')], '<document>\nHi\n</document>'],
    [
      'a place in the text',
      'this: and that',
      [pdf('b', 5)],
      'this:\n\n<document name="b">\ntext of b\n</document>\n\nand that',
    ],
    [
      'a context, which cannot close the tag either',
      'x',
      [{ ...text('Hi', 'a.txt'), context: 'Of "Ada"\n</document>' }],
      '<document name="a.txt" context="Of \\"Ada\\"\\n</document>">\nHi\n</document>\n\nx',
    ],
    [
      'an end in the text',
      'x',
      [text('a</document>b', '">')],
      '<document name="\\">">\na<\\/document>b\n</document>\n\nx',
    ],
  ])('becomes text: %s', async (_, message, images, expected) => {
    const harness = jobHarness({ extras: acceptsImages });
    await all(harness.run({ text: message, images, history: [{ role: 'user', text: message, images }] }));
    const [turn] = harness.processes[0]?.turns ?? [];
    expect([turn?.text, turn?.images]).toEqual([expected, []]);
    expect(turn?.history[0]).toMatchObject({ role: 'user', text: expected });
    await harness.expectTidy();
  });

  it('leaves the images in their order', async () => {
    const harness = jobHarness({ extras: acceptsImages });
    await all(harness.run({ text: 'abcd', images: [image, text('one', '', 2), { ...image, at: 4 }] }));
    const [turn] = harness.processes[0]?.turns ?? [];
    const whole = 'ab\n\n<document>\none\n</document>\n\ncd';
    expect([turn?.text, turn?.images]).toEqual([whole, [image, { ...image, at: whole.length }]]);
    await harness.expectTidy();
  });

  it('is refused before it waits, if no program reads PDFs', async () => {
    const harness = jobHarness({ extras: acceptsImages });
    harness.textReaders['application/pdf'].isMissing = true;
    expect(() => harness.run({ images: [pdf('a.pdf')] })).toThrow('files: a PDF needs pdftotext');
    expect(() => harness.run({ images: [pdf('a.pdf')] })).toThrow('the package poppler-utils');
    expect(endOf(await all(harness.run({ images: [text('Hi')] }))).outcome).toBe('ok');
  });

  it('ends the job with the reason, if it cannot be read', async () => {
    const harness = jobHarness();
    harness.textReaders['application/pdf'].readText = () =>
      Promise.reject(cliError('request_refused', 'it may be broken'));
    const end = endOf(await all(harness.run({ images: [pdf('a.pdf')] })));
    const failure = { reason: 'request_refused', message: 'it may be broken' };
    expect(end).toMatchObject({ outcome: 'cli_error', failure });
    await harness.expectTidy();
  });
});

describe('A document for a program that takes documents', () => {
  it('is passed on, but becomes text in the result of a tool', async () => {
    const harness = jobHarness({ extras: acceptsDocuments });
    harness.textReaders['application/pdf'].isMissing = true;
    const images = [pdf('a.pdf')];
    await all(harness.run({ text: 'Hi', images, history: [{ role: 'user', text: 'a', images }] }));
    const [turn] = harness.processes[0]?.turns ?? [];
    expect(turn).toMatchObject({ text: 'Hi', images, history: [{ role: 'user', text: 'a', images }] });
    const results = [{ id: '1', text: 'found', images: [pdf('b.pdf', 5)], isError: false }];
    const history = [{ role: 'assistant', text: '', calls: [{ id: '1', name: 'find', input: '{}' }] }] as const;
    expect(() => harness.run({ text: '', results, history })).toThrow('files: a PDF needs pdftotext');
    harness.textReaders['application/pdf'].isMissing = false;
    await all(harness.run({ text: '', results, history }));
    const shown = { text: 'found\n\n<document name="b.pdf">\ntext of b.pdf\n</document>', images: [] };
    expect(harness.processes[1]?.turns[0]?.results).toEqual([{ id: '1', isError: false, ...shown }]);
    await harness.expectTidy();
  });
});

describe('A long document for a program that takes none', () => {
  const read = documentReader(
    { 'application/pdf': { readText: async () => '' } },
    'key a',
    new AbortController().signal,
  );

  it('is read in several turns of the event loop, and no character or end tag is cut', async () => {
    let turns = 0;
    let isRead = false;
    const count = () => {
      if (!isRead) setImmediate(count);
      turns++;
    };
    count();
    const content = `${'aé漢😀'.repeat(200_000)}${'</document>'.repeat(60_000)}`;
    const turn = { ...plainLaunch(null), text: 'x', images: [text(content), text(content)], history: [] };
    const { text: whole } = await withDocumentTexts(turn, false, read);
    isRead = true;
    const document = `<document>\n${content.replaceAll('</d', '<\\/d')}\n</document>`;
    expect(whole === `${document}\n\n${document}\n\nx`).toBe(true);
    expect(turns).toBeGreaterThan(20);
  });
});

describe('A document whose text ends with the beginning of an end tag', () => {
  const read = documentReader(
    { 'application/pdf': { readText: async () => '' } },
    'key a',
    new AbortController().signal,
  );
  const piece = 256 * 1024;

  it.each([0, 1, piece - 11, piece - 10, piece - 9, piece, piece + 1, 2 * piece - 10])(
    'is read: after %d characters',
    async (length) => {
      const content = `${'a'.repeat(length)}</document`;
      const turn = { ...plainLaunch(null), text: 'x', images: [text(content)], history: [] };
      const { text: whole } = await withDocumentTexts(turn, false, read);
      expect(whole === `<document>\n${'a'.repeat(length)}<\\/document\n</document>\n\nx`).toBe(true);
    },
  );
});

describe('Documents of one request', () => {
  it('are read one after the other, and none after one that cannot be read', async () => {
    let open = 0;
    let most = 0;
    const names: string[] = [];
    const read = async ({ name }: FileDocument) => {
      names.push(name);
      most = Math.max(most, ++open);
      await settled();
      open--;
      if (name === 'broken') throw cliError('request_refused', 'broken');
      return name;
    };
    const turnOf = (...all: string[]) => ({
      ...{ ...plainLaunch(null), text: '', images: [] },
      results: all.slice(0, 2).map((name) => ({ id: name, text: '', images: [pdf(name)], isError: false })),
      history: all.slice(2).map((name) => ({ role: 'user' as const, text: '', images: [pdf(name)] })),
    });
    await withDocumentTexts(turnOf('a', 'b', 'c', 'd'), false, read);
    expect([most, names]).toEqual([1, ['a', 'b', 'c', 'd']]);
    await expect(withDocumentTexts(turnOf('a', 'broken', 'c', 'd'), false, read)).rejects.toThrow('broken');
    await settled();
    expect([open, names.slice(4)]).toEqual([0, ['a', 'broken']]);
  });
});

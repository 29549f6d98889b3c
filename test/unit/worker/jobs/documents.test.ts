import { createHash } from 'node:crypto';
import type { FileDocument } from '../../../../src/shared/job.js';
import { documentOf, noDocuments, type SentDocument, textDocument } from '../../../../src/worker/jobs/documents.js';
import { pdfOf } from '../../../support/basics/pdf.js';
import { documentInspector } from '../../../support/jobs/inspected-documents.js';

const base64 = (text: string | Buffer) => Buffer.from(text).toString('base64');
const pdf = base64(pdfOf({ pages: 2 }));

async function inspected(sent: SentDocument): Promise<FileDocument> {
  const { images } = await documentInspector().inspectJob({ images: [{ at: 0, ...sent }] }, 'key ada');
  return images?.[0] as FileDocument;
}

async function faultOf(...[mediaType, data, name]: [string, string, unknown?]): Promise<string | null> {
  try {
    await inspected(documentOf(mediaType, data, 'files.0.data', name));
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

describe('A document', () => {
  it('is a PDF with its pages', async () => {
    const lines = pdf.replace(/.{60}/g, '$&\n');
    const document = await inspected(documentOf('application/pdf; charset=binary', lines, 'file', 'a\n"b".pdf '));
    const digest = createHash('sha256').update(pdf, 'base64').digest('base64');
    expect(document).toEqual({ at: 0, mediaType: 'application/pdf', data: pdf, pages: 2, name: 'a "b".pdf', digest });
  });

  it.each(['text/plain', 'TEXT/markdown', 'application/json', 'image/svg+xml'])(
    'is plain text: %s',
    async (mediaType) => {
      const document = await inspected(documentOf(mediaType, base64('grüße'), 'file'));
      expect(document).toMatchObject({ mediaType: 'text/plain', data: base64('grüße'), name: '' });
      expect(document.digest).toBe((await inspected(textDocument('grüße', 'file'))).digest);
    },
  );

  it('is refused without a feature that inspects it, wherever it stands', async () => {
    const images = [{ at: 0, ...textDocument('Hello', 'files.0.text') }];
    const refusal = 'files.0.text: must not be sent: this service takes no documents';
    for (const job of [{ images }, { results: [{ id: 'a', text: '', isError: false, images }] }])
      await expect(noDocuments.inspectJob(job, 'key ada')).rejects.toThrow(refusal);
    const history = [{ role: 'user' as const, text: 'Hi', images }];
    await expect(noDocuments.inspectJob({ history }, 'key ada')).rejects.toThrow(refusal);
    expect(await noDocuments.inspectJob({ images: [] }, 'key ada')).toEqual({ images: [] });
  });

  it.each<[string, Parameters<typeof faultOf>]>([
    ['must be application/pdf, or a type of text such as text/plain', ['application/zip', pdf]],
    ['must be base64', ['application/pdf', 'no base64!']],
    ['is not a PDF', ['application/pdf', base64('Hello')]],
    ['must be at most 32 MB', ['application/pdf', base64(pdfOf({ fillerBytes: 32 * 1024 ** 2 }))]],
    ['must be a text in UTF-8', ['text/plain', base64(Buffer.from([0xff, 0xfe]))]],
    ['must be a text, without NUL', ['text/plain', base64('a\0b')]],
    ['must not be empty', ['text/plain', base64(' \n')]],
    ['must have a string as its name', ['text/plain', base64('a'), 5]],
    ['must have a name of at most 255 characters', ['text/plain', base64('a'), 'x'.repeat(256)]],
  ])('is refused, with the field named: %s', async (fault, sent) => {
    expect(await faultOf(...sent)).toBe(`files.0.data: ${fault}`);
  });
});

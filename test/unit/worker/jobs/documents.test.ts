import { documentOf, textDocument } from '../../../../src/worker/jobs/documents.js';
import { pdfOf } from '../../../support/basics/pdf.js';

const base64 = (text: string | Buffer) => Buffer.from(text).toString('base64');
const pdf = base64(pdfOf({ pages: 2 }));

function faultOf(...[mediaType, data, name]: [string, string, unknown?]): string | null {
  try {
    documentOf(mediaType, data, 'files.0.data', name);
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

describe('A document', () => {
  it('is a PDF with its pages', () => {
    const lines = pdf.replace(/.{60}/g, '$&\n');
    const document = documentOf('application/pdf; charset=binary', lines, 'file', 'a\n"b".pdf ');
    expect(document).toMatchObject({ mediaType: 'application/pdf', data: pdf, pages: 2, name: 'a "b".pdf' });
  });

  it.each(['text/plain', 'TEXT/markdown', 'application/json', 'image/svg+xml'])('is plain text: %s', (mediaType) => {
    const document = documentOf(mediaType, base64('grüße'), 'file');
    expect(document).toMatchObject({ mediaType: 'text/plain', data: base64('grüße'), name: '' });
    expect(document.digest).toBe(textDocument('grüße', 'file').digest);
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
  ])('is refused, with the field named: %s', (fault, sent) => {
    expect(faultOf(...sent)).toBe(`files.0.data: ${fault}`);
  });
});

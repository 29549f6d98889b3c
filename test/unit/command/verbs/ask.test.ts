import type { NamedFiles } from '../../../../src/command/base/command.js';
import { readDocuments, readEffort, readImages, readSchema } from '../../../../src/command/verbs/ask.js';

const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex');
const jpeg = Buffer.from('ffd8ffe000104a464946000101000001', 'hex');

function filesWith(contents: Readonly<Record<string, Buffer | string>>): NamedFiles {
  const read = async (path: string) => {
    const content = contents[path];
    if (content === undefined) throw Object.assign(new Error('ENOENT'), { code: 'ENOENT' });
    return Buffer.from(content);
  };
  return { read, readRegular: read, create: async () => {} };
}

describe('The images of a question', () => {
  it('are identified by their content, whatever their names', async () => {
    const files = filesWith({ 'a.jpg': png, b: jpeg });
    expect(await readImages(['a.jpg', 'b'], files)).toEqual([
      { media_type: 'image/png', data: png.toString('base64') },
      { media_type: 'image/jpeg', data: jpeg.toString('base64') },
    ]);
    expect(await readImages([], files)).toBeUndefined();
  });

  it.each([
    ['text.png', '--image: text.png is not a PNG, JPEG, GIF or WebP file'],
    ['empty.png', '--image: empty.png is not a PNG, JPEG, GIF or WebP file'],
    ['gone.png', '--image: gone.png: there is no such file or folder'],
  ])('are rejected before anything is sent: %s', async (path, message) => {
    const files = filesWith({ 'text.png': 'hello', 'empty.png': '' });
    await expect(readImages([path], files)).rejects.toMatchObject({ exitCode: 64, message });
  });
});

describe('The documents of a question', () => {
  it('are PDFs by their content, or texts', async () => {
    const files = filesWith({ '/tmp/a.txt': '%PDF-1.5 …', 'b.pdf': 'grüße' });
    expect(await readDocuments(['/tmp/a.txt', 'b.pdf'], files)).toEqual([
      { name: 'a.txt', media_type: 'application/pdf', data: Buffer.from('%PDF-1.5 …').toString('base64') },
      { name: 'b.pdf', text: 'grüße' },
    ]);
    expect(await readDocuments([], files)).toBeUndefined();
  });

  it.each([
    ['a.png', '--file: a.png is neither a PDF nor a text'],
    ['gone', '--file: gone: there is no such file or folder'],
  ])('are rejected before anything is sent: %s', async (path, message) => {
    await expect(readDocuments([path], filesWith({ 'a.png': png }))).rejects.toMatchObject({ exitCode: 64, message });
  });
});

describe('The schema of an answer', () => {
  it('is inline JSON, or a file', async () => {
    const files = filesWith({ 'answer.json': '{"type":"object"}' });
    for (const given of [' {"type":"object"}', 'answer.json'])
      expect(await readSchema(given, files)).toEqual({ type: 'object' });
    expect(await readSchema(undefined, files)).toBeUndefined();
  });

  it.each(['{', 'not.json', 'gone.json'])('is rejected if it cannot be read: %s', async (given) => {
    const files = filesWith({ 'not.json': 'type: object' });
    await expect(readSchema(given, files)).rejects.toMatchObject({ exitCode: 64, message: /^--schema: / });
  });
});

it('The efforts are known', () => {
  expect([readEffort(undefined), readEffort('high')]).toEqual([undefined, 'high']);
  expect(() => readEffort('huge')).toThrow('--effort: must be low, medium, high, xhigh or max');
});

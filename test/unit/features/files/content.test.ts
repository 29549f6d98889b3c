import { findUserFile, readWholeFile, sendFile } from '../../../../src/features/files/content.js';
import { RelayError } from '../../../../src/shared/errors.js';
import { answerOf } from '../../../support/doors/express-server.js';
import { FakePrimary } from '../../../support/jobs/fake-primary.js';

const view = { id: 'file-1', purpose: 'user_data', name: 'a.pdf', mediaType: 'application/pdf', bytes: 5 };

function primaryWith(file: unknown = view): FakePrimary {
  const text = 'bytes';
  const filePiece = ({ from }: { readonly from: number }) => {
    return { data: Buffer.from(text.slice(from, from + 2)).toString('base64') };
  };
  return new FakePrimary({ file, filePiece });
}

const key = ['file-1', 'key ada'] as const;

describe('A file of a client', () => {
  it('has its bytes, its name and its type', async () => {
    const primary = primaryWith().asPrimary;
    expect(await findUserFile(primary, ...key, 'input.0.file_id')).toEqual(view);
    expect(String(await readWholeFile(primary, ...key, 'input.0.file_id'))).toBe('bytes');
  });

  it.each([
    [
      'that does not exist',
      new RelayError('not_found', 'no such file'),
      'not_found',
      /^input\.0\.file_id: no such file/,
    ],
    [
      'of another purpose',
      { ...view, purpose: 'batch' },
      'validation_error',
      /must be a file of the purpose user_data/,
    ],
  ])('is refused in a request: %s', async (_, file, code, message) => {
    const found = findUserFile(primaryWith(file).asPrimary, ...key, 'input.0.file_id');
    await expect(found).rejects.toThrow(message);
    await expect(found).rejects.toMatchObject({ code, details: [{ path: 'input.0.file_id' }] });
  });

  it('names the field of the request if it is removed while it is read', async () => {
    const filePiece = new RelayError('not_found', 'no such file');
    const read = readWholeFile(new FakePrimary({ filePiece }).asPrimary, ...key, 'input.0.file_id');
    await expect(read).rejects.toMatchObject({ code: 'not_found', details: [{ path: 'input.0.file_id' }] });
  });

  it('is sent as a download that no browser shows', async () => {
    const primary = primaryWith().asPrimary;
    const order = { id: 'file-1', client: 'key ada' as const, bytes: 5 };
    const { headers, text } = await answerOf([
      async (_req, res) => sendFile(primary, res, order, 'application/x-jsonl'),
    ]);
    expect([headers['content-type'], headers['content-disposition'], text]).toEqual([
      'application/x-jsonl',
      'attachment',
      'bytes',
    ]);
  });
});

import { RelayError } from '../../../../src/shared/errors.js';
import { readUserFile, sendFile } from '../../../../src/worker/files/content.js';
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

const limits = { maxBytes: 10, path: 'input.0.file_id' };

describe('A file of a client', () => {
  it('has its bytes, its name and its type', async () => {
    const { data, ...others } = await readUserFile(primaryWith().asPrimary, 'file-1', 'key ada', limits);
    expect([String(data), others]).toEqual(['bytes', { name: 'a.pdf', mediaType: 'application/pdf' }]);
  });

  it.each([
    ['that does not exist', new RelayError('not_found', 'no such file'), /^input\.0\.file_id: is no file/],
    ['of another purpose', { ...view, purpose: 'batch' }, /must be a file of the purpose user_data/],
    ['that is too large', { ...view, bytes: 11 }, /has 11 bytes, and may have 10/],
  ])('is refused in a request: %s', async (_, file, message) => {
    const read = readUserFile(primaryWith(file).asPrimary, 'file-1', 'key ada', limits);
    await expect(read).rejects.toThrow(message);
    await expect(read).rejects.toMatchObject({ code: 'validation_error' });
  });

  it('is sent as a download that no browser shows', async () => {
    const primary = primaryWith().asPrimary;
    const key = { id: 'file-1', client: 'key ada', bytes: 5 };
    const { headers, text } = await answerOf([async (_req, res) => sendFile(primary, res, key, 'application/x-jsonl')]);
    expect([headers['content-type'], headers['content-disposition'], text]).toEqual([
      'application/x-jsonl',
      'attachment',
      'bytes',
    ]);
  });
});

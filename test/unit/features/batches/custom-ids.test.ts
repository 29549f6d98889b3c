import { refuseRepeatedIds } from '../../../../src/features/batches/custom-ids.js';
import { FakePrimary } from '../../../support/jobs/fake-primary.js';

const never = new AbortController().signal;
const pieceBytes = 64 * 1024;

function refuse(text: string, signal = never): Promise<void> {
  const bytes = Buffer.from(text);
  const filePiece = ({ from }: { readonly from: number }) => ({
    data: bytes.subarray(from, from + pieceBytes).toString('base64'),
  });
  const primary = new FakePrimary({ filePiece });
  return refuseRepeatedIds(primary.asPrimary, { id: 'file-1', client: 'key ada' }, signal);
}

function lines(...ids: readonly unknown[]): string {
  return ids.map((id) => JSON.stringify({ custom_id: id, body: 'x'.repeat(20) })).join('\n');
}

describe('The ids of the lines of a batch', () => {
  it.each([
    ['are repeated', lines('a', 'b', 'a'), 'has the custom_id "a" in line 3 and in an earlier line'],
    ['are repeated behind blank lines', `${lines('a')}\n\n${lines('a')}\n`, 'in line 3'],
    ['are long', lines('x'.repeat(512), 'x'.repeat(512)), `"${'x'.repeat(64)}" in line 2`],
    ['are repeated in another spelling', `${lines('ä')}\n{"custom_id":"\\u00e4"}`, 'in line 2'],
  ])('are refused if they %s', async (_, text, message) => {
    const refused = refuse(text);
    await expect(refused).rejects.toThrow(message);
    await expect(refused).rejects.toMatchObject({ code: 'validation_error' });
  });

  it.each([
    ['differ', lines(...Array.from({ length: 5000 }, (_, index) => `line ${index}`))],
    ['are missing, or no texts', `${lines(1, 1, null, null)}\n{}\n{}\nno JSON\nno JSON`],
  ])('are accepted if they %s', async (_, text) => {
    await expect(refuse(text)).resolves.toBeUndefined();
  });

  it('are read no further when the client disconnects', async () => {
    await expect(refuse(lines('a', 'a'), AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone');
  });
});

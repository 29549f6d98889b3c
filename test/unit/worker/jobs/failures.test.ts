import { cliError, invalid } from '../../../../src/shared/errors.js';
import { inWordsOf, partFieldIn } from '../../../../src/worker/jobs/job-request.js';

const words = { imageField: 'messages.2.content.1', schemaWish: 'FORMAT' };
const plain = { imageField: null, schemaWish: null };

describe('A failure of a request to an SDK endpoint', () => {
  it('names the field of the image in the request', () => {
    const refusal = invalid('images', 'the model CLI of this service takes none');
    const said = 'the model CLI of this service does not accept images';
    expect(inWordsOf(words, refusal)).toEqual(invalid('messages.2.content.1', said));
    expect(inWordsOf(plain, refusal)).toBe(refusal);
  });

  it('explains how to send a schema if an object was requested without one', () => {
    const failure = cliError('schema_mismatch', 'the answer does not fit', { stderr: 'x' });
    expect(inWordsOf(words, failure)).toMatchObject({
      code: 'cli_error',
      reason: 'schema_mismatch',
      stderr: 'x',
      message: expect.stringMatching(/^the answer does not fit\. json_object does not .* FORMAT$/),
    });
    expect(inWordsOf(plain, failure)).toBe(failure);
  });

  it.each([invalid('model', 'x'), cliError('quota', 'x'), new Error('x'), 'x'])(
    'is otherwise unchanged: %s',
    (failure) => {
      expect(inWordsOf(words, failure)).toBe(failure);
    },
  );
});

it('The field of an image is that of the first image', () => {
  const image = { type: 'image' };
  const contents = [
    ['a', 'text'],
    ['b', [null, 5]],
    ['c', [{ type: 'text' }, image, image]],
    ['d', [image]],
  ] as const;
  expect(partFieldIn(contents, 'image')).toBe('c.1');
  expect(partFieldIn(contents.slice(0, 2), 'image')).toBeNull();
});

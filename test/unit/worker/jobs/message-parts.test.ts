import { RelayError } from '../../../../src/shared/errors.js';
import type { Message } from '../../../../src/shared/job.js';
import {
  imageOf,
  imageOfUrl,
  isOfUnknownModel,
  joined,
  lastOfUser,
  messageOf,
  type Part,
  stopSequences,
  textAt,
} from '../../../../src/worker/jobs/message-parts.js';

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const image = { mediaType: 'image/png', data: png } as const;
const text = (value: string): Part => ({ type: 'text', text: value });
const picture: Part = { type: 'image', ...image };
const user = (value: string, ...at: number[]): Message => said('user', value, at);
const model = (value: string): Message => ({ role: 'assistant', text: value });

function said(role: Message['role'], value: string, at: readonly number[]): Message {
  return at.length === 0
    ? { role, text: value }
    : { role, text: value, images: at.map((each) => ({ ...image, at: each })) };
}

function faultOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (error instanceof RelayError) return error.message;
    throw error;
  }
  return 'none';
}

describe('The parts of a message', () => {
  it.each([
    ['one text', [text('a')], user('a')],
    ['two texts, a blank line between them', [text('a'), text('b')], user('a\n\nb')],
    ['no blank line around what is empty', [text(''), text('a'), text(''), text('b')], user('a\n\nb')],
    ['an image at its place', [text('ä😀'), picture, text('b')], user('ä😀b', 3)],
    ['images alone', [picture, picture], user('', 0, 0)],
    ['nothing', [], user('')],
  ])('become one message: %s', (_, parts, message) => {
    expect(messageOf('user', parts)).toEqual(message);
  });

  it('are joined without empty ones', () => {
    expect(joined(['', 'a', ' \n', 'b'])).toBe('a\n\nb');
    expect(joined(['', '  '])).toBeUndefined();
  });
});

describe('A conversation', () => {
  it('is split before its last message', () => {
    expect(lastOfUser([user('a'), model('b'), user('c')], 'messages')).toEqual({
      question: user('c'),
      history: [user('a'), model('b')],
    });
    expect(lastOfUser([user('', 0)], 'messages')).toEqual({ question: user('', 0), history: [] });
  });

  it.each([
    ['holds nothing', []],
    ['ends with the model', [user('a'), model('b')]],
    ['ends with a blank message', [user('a'), model('b'), user(' \n')]],
    ['ends with an empty message after another', [user('a'), user('')]],
  ])('is rejected if it %s', (_, messages) => {
    expect(faultOf(() => lastOfUser(messages, 'input'))).toMatch(/^input: must (contain|end with) a message/);
  });
});

describe('An image', () => {
  it('is validated by its type and its first bytes', () => {
    expect(imageOf('image/png', png, 'here')).toEqual(picture);
    expect(imageOfUrl(`data:image/png;base64,${png}`, 'here')).toEqual(picture);
    expect(imageOfUrl(`DATA:IMAGE/PNG;base64,${png}`, 'here')).toEqual(picture);
  });

  it.each([
    ['of another type', `data:image/jpeg;base64,${png}`, 'here: is not a file of the type image/jpeg'],
    ['of no type of ours', `data:image/tiff;base64,${png}`, 'here: must be one of image/png'],
    ['of text', `data:text/plain;base64,${png}`, 'here: must be one of image/png'],
    ['that is not base64', 'data:image/png;base64,?', 'here: must be base64'],
    ['without base64', 'data:image/png,abc', 'here: must be a data URL'],
    ['elsewhere', 'https://example.com/a.png', 'here: must be a data URL with base64: images are not fetched'],
    ['of nothing', '', 'here: must be a data URL'],
    ['that is empty', 'data:image/png;base64,', 'here: must be base64'],
  ])('is rejected if it is one %s', (_, url, message) => {
    expect(faultOf(() => imageOfUrl(url, 'here'))).toContain(message);
  });
});

describe('A text', () => {
  it('has U+FFFD in place of NUL and lone surrogates', () => {
    expect(textAt('a\0b\ud83dc\udc4d😀', 'here')).toBe('a\ufffdb\ufffdc\ufffd😀');
  });

  it('is accepted unchanged, even empty', () => {
    expect(['', 'ä😀\n'].map((each) => textAt(each, 'here'))).toEqual(['', 'ä😀\n']);
  });

  it.each([
    [undefined, 'here: must be sent'],
    [5, 'here: must be a string'],
  ])('is rejected if it is %j', (value, message) => {
    expect(faultOf(() => textAt(value, 'here'))).toBe(message);
  });
});

it('Stop sequences are limited in number and length', () => {
  expect(stopSequences.safeParse(Array.from({ length: 16 }, () => 'x'.repeat(500))).success).toBe(true);
  expect(stopSequences.safeParse(Array.from({ length: 17 }, () => 'x')).success).toBe(false);
  expect(stopSequences.safeParse(['x'.repeat(501)]).success).toBe(false);
});

it('A model is unknown only if the request named one', () => {
  const fault = (
    message: string,
    path = 'model',
    code: 'validation_error' | 'not_found' | 'timeout' = 'validation_error',
  ) => isOfUnknownModel(new RelayError(code, message, { details: [{ path, message }] }));
  expect([fault('must be one of a, b'), fault('no such model', 'model', 'not_found')]).toEqual([true, true]);
  expect([
    fault('must be sent'),
    fault('must be a string'),
    fault('bad', 'n'),
    fault('bad', 'model', 'timeout'),
  ]).toEqual([false, false, false, false]);
});

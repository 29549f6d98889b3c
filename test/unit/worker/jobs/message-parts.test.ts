import type { Message } from '../../../../src/shared/job.js';
import { messageOf, type Part } from '../../../../src/worker/jobs/message-parts.js';
import { png } from '../../../support/doors/sdk-messages.js';

const image = { mediaType: 'image/png', data: png } as const;
const text = (value: string): Part => ({ type: 'text', text: value });
const picture: Part = { type: 'image', ...image };

function user(value: string, ...at: number[]): Message {
  const images = at.map((each) => ({ ...image, at: each }));
  return { role: 'user', text: value, ...(at.length > 0 && { images }) };
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
});

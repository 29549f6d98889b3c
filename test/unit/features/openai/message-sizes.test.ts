import { bytesOfMessages, haveImages } from '../../../../src/features/openai/message-sizes.js';
import type { Message } from '../../../../src/shared/job.js';

const image = { mediaType: 'image/png', data: 'abcd', at: 0 } as const;
const user: Message = { role: 'user', text: '' };

it('A conversation has the size of its texts, inputs, results and images, and a fixed size for each part', () => {
  const call: Message = { role: 'assistant', text: '12', calls: [{ id: 'a', name: 'look', input: '{}' }] };
  const result = { id: 'a', text: '123', images: [image], isError: false };
  expect(bytesOfMessages([{ ...user, text: 'é', images: [image] }, call])).toBe(2 + 4 + 2 + 2 + 3 * 64);
  expect(bytesOfMessages([{ ...user, results: [result] }])).toBe(3 + 4 + 2 * 64);
  const document = { mediaType: 'text/plain', data: 'YWJjZGVm', name: 'a', digest: 'x', at: 0 } as const;
  const explained = { ...document, context: 'Öde' };
  expect(bytesOfMessages([{ ...user, images: [document, explained] }])).toBe(8 + 8 + 4 + 64);
  expect([
    haveImages([call]),
    haveImages([{ ...user, images: [image] }]),
    haveImages([{ ...user, results: [result] }]),
  ]).toEqual([...[false, true, true]]);
});

import type { Message } from '../../../../src/shared/job.js';
import { bytesOfMessages, haveImages, inTurns, messagesBefore } from '../../../../src/shared/text/turns.js';
import { headOf } from '../../../support/response-store-contract.js';

const image = { mediaType: 'image/png', data: 'abcd' } as const;

function user(text: string, ...places: readonly number[]): Message {
  return { role: 'user', text, ...(places.length > 0 && { images: places.map((at) => ({ ...image, at })) }) };
}

function model(text: string): Message {
  return { role: 'assistant', text };
}

describe('A conversation', () => {
  it('of many messages with images is looked through once', () => {
    const startedMs = performance.now();
    const [turn] = inTurns(Array.from({ length: 20_000 }, () => user('a', 1)));
    expect(performance.now() - startedMs).toBeLessThan(1000);
    expect([turn?.images?.length, turn?.images?.at(-1)?.at]).toEqual([20_000, turn?.text.length]);
  });

  it('has turns: neighbours of one role are one message, and what is empty is none', () => {
    const turns = inTurns([user('a', 1), user('b', 0), model(''), user('c'), model('d'), model('e')]);
    expect(turns).toEqual([user('a\n\nb\n\nc', 1, 3), model('d\n\ne')]);
  });

  it('has the size of its texts, inputs, results and images, and something for each part', () => {
    const call: Message = { ...model('12'), calls: [{ id: 'a', name: 'look', input: '{}' }] };
    const result = { id: 'a', text: '123', images: [{ ...image, at: 0 }], isError: false };
    expect(bytesOfMessages([user('é', 0), call])).toBe(2 + 4 + 2 + 2 + 3 * 64);
    expect(bytesOfMessages([{ ...user(''), results: [result] }])).toBe(3 + 4 + 2 * 64);
    expect([haveImages([call]), haveImages([user('', 0)]), haveImages([{ ...user(''), results: [result] }])]).toEqual([
      ...[false, true, true],
    ]);
  });

  it('has messages before a request that the request does not bring', () => {
    expect(messagesBefore({ history: [model('a')] })).toBe(1);
    expect(messagesBefore({ history: [model('a')], earlier: headOf('one') })).toBe(3);
  });
});

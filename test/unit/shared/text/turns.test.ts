import type { Message } from '../../../../src/shared/job.js';
import { attachmentTokens, inTurns, messagesBefore } from '../../../../src/shared/text/turns.js';
import { processorMs } from '../../../support/processes/processor-time.js';
import { headOf } from '../../../support/stores/response-store-contract.js';

const image = { mediaType: 'image/png', data: 'abcd' } as const;

function user(text: string, ...places: readonly number[]): Message {
  return { role: 'user', text, ...(places.length > 0 && { images: places.map((at) => ({ ...image, at })) }) };
}

function model(text: string): Message {
  return { role: 'assistant', text };
}

describe('A conversation', () => {
  it('of many messages with images is processed in linear time', () => {
    const startedMs = processorMs();
    const [turn] = inTurns(Array.from({ length: 20_000 }, () => user('a', 1)));
    expect(processorMs() - startedMs).toBeLessThan(1000);
    expect([turn?.images?.length, turn?.images?.at(-1)?.at]).toEqual([20_000, turn?.text.length]);
  });

  it('consists of turns: neighbouring messages of one role are merged, and empty ones are dropped', () => {
    const turns = inTurns([user('a', 1), user('b', 0), model(''), user('c'), model('d'), model('e')]);
    expect(turns).toEqual([user('a\n\nb\n\nc', 1, 3), model('d\n\ne')]);
  });

  it('has estimated tokens for its documents: by their pages, else by their bytes, with their contexts', () => {
    const document = { mediaType: 'text/plain', data: 'YWJjZGVm', name: 'a', digest: 'x', at: 0 } as const;
    const explained = { ...document, context: 'Öde' };
    expect([document, explained, { ...explained, pages: 2 }].map(attachmentTokens)).toEqual([2, 3, 4001]);
  });

  it('counts the stored messages before a request too', () => {
    expect(messagesBefore({ history: [model('a')] })).toBe(1);
    expect(messagesBefore({ history: [model('a')], earlier: headOf('one') })).toBe(3);
  });
});

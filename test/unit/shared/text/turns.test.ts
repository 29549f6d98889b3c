import type { Message } from '../../../../src/shared/job.js';
import {
  attachmentTokens,
  bytesOfMessages,
  distinctIds,
  haveImages,
  inTurns,
  messagesBefore,
  withDistinctIds,
} from '../../../../src/shared/text/turns.js';
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

  it('has the size of its texts, inputs, results and images, and a fixed size for each part', () => {
    const call: Message = { ...model('12'), calls: [{ id: 'a', name: 'look', input: '{}' }] };
    const result = { id: 'a', text: '123', images: [{ ...image, at: 0 }], isError: false };
    expect(bytesOfMessages([user('é', 0), call])).toBe(2 + 4 + 2 + 2 + 3 * 64);
    expect(bytesOfMessages([{ ...user(''), results: [result] }])).toBe(3 + 4 + 2 * 64);
    const document = { mediaType: 'text/plain', data: 'YWJjZGVm', name: 'a', digest: 'x', at: 0 } as const;
    const explained = { ...document, context: 'Öde' };
    expect(bytesOfMessages([{ ...user(''), images: [document, explained] }])).toBe(8 + 8 + 4 + 64);
    expect([document, explained, { ...explained, pages: 2 }].map(attachmentTokens)).toEqual([2, 3, 4001]);
    expect([haveImages([call]), haveImages([user('', 0)]), haveImages([{ ...user(''), results: [result] }])]).toEqual([
      ...[false, true, true],
    ]);
  });

  it('has distinct ids for the calls of one message: the first result is for the first call', () => {
    const call = (id: string) => ({ id, name: 'look', input: '{}' });
    const result = (id: string, text: string) => ({ id, text, isError: false });
    const [answer, asked] = withDistinctIds([
      { ...model(''), calls: ['a', 'b', 'a', 'a_2', 'a'].map(call) },
      {
        ...user(''),
        results: [result('a_2', '1'), result('a', '2'), result('b', '3'), result('a', '4'), result('a', '5')],
      },
    ]);
    expect(answer?.calls?.map(({ id }) => id)).toEqual(['a', 'b', 'a_3', 'a_2', 'a_4']);
    expect(asked?.results?.map(({ id, text }) => `${id} ${text}`)).toEqual(['a_2 1', 'a 2', 'b 3', 'a_3 4', 'a_4 5']);
  });

  it('gets distinct ids quickly, however often one is repeated', () => {
    const ids = Array.from({ length: 50_000 }, () => 'a');
    const startedMs = processorMs();
    expect(new Set(ids.map(distinctIds(ids))).size).toBe(ids.length);
    expect(processorMs() - startedMs).toBeLessThan(1000);
  });

  it('counts the stored messages before a request too', () => {
    expect(messagesBefore({ history: [model('a')] })).toBe(1);
    expect(messagesBefore({ history: [model('a')], earlier: headOf('one') })).toBe(3);
  });
});

import { distinctIds, withDistinctIds } from '../../../../src/features/doors/distinct-ids.js';
import { processorMs } from '../../../support/processes/processor-time.js';

it('A conversation has distinct ids for the calls of one message: the first result is for the first call', () => {
  const call = (id: string) => ({ id, name: 'look', input: '{}' });
  const result = (id: string, text: string) => ({ id, text, isError: false });
  const [answer, asked] = withDistinctIds([
    { role: 'assistant', text: '', calls: ['a', 'b', 'a', 'a_2', 'a'].map(call) },
    {
      role: 'user',
      text: '',
      results: [result('a_2', '1'), result('a', '2'), result('b', '3'), result('a', '4'), result('a', '5')],
    },
  ]);
  expect(answer?.calls?.map(({ id }) => id)).toEqual(['a', 'b', 'a_3', 'a_2', 'a_4']);
  expect(asked?.results?.map(({ id, text }) => `${id} ${text}`)).toEqual(['a_2 1', 'a 2', 'b 3', 'a_3 4', 'a_4 5']);
});

it('A conversation gets distinct ids quickly, however often one is repeated', () => {
  const ids = Array.from({ length: 50_000 }, () => 'a');
  const startedMs = processorMs();
  expect(new Set(ids.map(distinctIds(ids))).size).toBe(ids.length);
  expect(processorMs() - startedMs).toBeLessThan(1000);
});

import type { Request } from 'express';
import { openAiPage, pageBody } from '../../../../src/worker/files/pages.js';
import type { Reply } from '../../../../src/worker/http/exchange.js';

const res = { locals: { client: 'key ada' } } as Reply;
const asked = (query: Readonly<Record<string, string>>) => ({ query }) as unknown as Request;

describe('The query of a list', () => {
  it('of OpenAI begins with the newest entry by default', () => {
    const usual = { client: 'key ada', after: null, limit: 20, isAscending: false };
    expect(openAiPage(asked({}), res)).toEqual({ order: usual, isReversed: false });
    const { order } = openAiPage(asked({ limit: '99999', order: 'asc', after: 'file-1' }), res);
    expect(order).toEqual({ client: 'key ada', after: 'file-1', limit: 1000, isAscending: true });
  });

  it.each([{ limit: '0' }, { limit: 'x' }, { order: 'up' }, { after: '' }])('is refused: %j', (query) => {
    expect(() => openAiPage(asked(query as Record<string, string>), res)).toThrow(/must be/);
  });
});

it('A page names its first and last entry', () => {
  const ids = [{ id: 'a' }, { id: 'b' }];
  expect(pageBody(ids, true, ({ id }) => ({ id }))).toEqual({ data: ids, has_more: true, first_id: 'a', last_id: 'b' });
  expect(pageBody([], false, () => ({}))).toEqual({ data: [], has_more: false, first_id: null, last_id: null });
});

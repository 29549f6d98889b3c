import type { Request } from 'express';
import { openAiPage } from '../../../../src/features/files/openai-form.js';
import type { Reply } from '../../../../src/worker/http/exchange.js';

const res = { locals: { client: 'key ada' } } as unknown as Reply;
const asked = (query: Readonly<Record<string, string>>) => ({ query }) as unknown as Request;

describe('The query of a list of OpenAI’s API', () => {
  it('begins with the newest entry by default', () => {
    const usual = { client: 'key ada' as const, after: null, limit: 20, isAscending: false };
    expect(openAiPage(asked({}), res)).toEqual({ order: usual, isReversed: false });
    const { order } = openAiPage(asked({ limit: '99999', order: 'asc', after: 'file-1' }), res);
    expect(order).toEqual({ client: 'key ada', after: 'file-1', limit: 1000, isAscending: true });
  });

  it.each([{ limit: '0' }, { limit: 'x' }, { order: 'up' }, { after: '' }])('is refused: %j', (query) => {
    expect(() => openAiPage(asked(query as Record<string, string>), res)).toThrow(/must be/);
  });
});

import type { Request } from 'express';
import { anthropicPage } from '../../../../src/features/files/anthropic-form.js';
import type { Reply } from '../../../../src/worker/http/exchange.js';

const res = { locals: { client: 'key ada' } } as unknown as Reply;
const asked = (query: Readonly<Record<string, string>>) => ({ query }) as unknown as Request;

describe('The query of a list', () => {
  it('of Anthropic reads backwards before an entry', () => {
    for (const after of [{ after_id: 'b' }, { page: 'b' }])
      expect(anthropicPage(asked(after), res)).toMatchObject({ order: { after: 'b', isAscending: false } });
    const before = anthropicPage(asked({ before_id: 'b', limit: '5' }), res);
    expect(before).toMatchObject({ order: { after: 'b', limit: 5, isAscending: true }, isReversed: true });
  });

  it('is refused if it names two entries', () => {
    expect(() => anthropicPage(asked({ after_id: 'a', before_id: 'b' }), res)).toThrow(/together/);
  });
});

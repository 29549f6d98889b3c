import { z } from 'zod';
import { queryOf } from '../../../../src/worker/http/body.js';

const digits = z.string().regex(/^\d+$/, 'must be a number');

describe('A query parameter', () => {
  it('has the sent value, or undefined if none was sent', () => {
    expect(queryOf({ query: { limit: '7' } }, 'limit', digits)).toBe('7');
    expect(queryOf({ query: {} }, 'limit', digits)).toBeUndefined();
  });

  it.each<[unknown, string]>([
    ['many', 'limit: must be a number'],
    [['1', '2'], 'limit: must be sent once'],
    [{ a: '1' }, 'limit: must be sent once'],
  ])('is rejected by name: %j', (limit, message) => {
    const read = () => queryOf({ query: { limit } as never }, 'limit', digits);
    expect(read).toThrow(expect.objectContaining({ code: 'validation_error', message }));
  });
});

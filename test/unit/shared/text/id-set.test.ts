import { IdSet } from '../../../../src/shared/text/id-set.js';

describe('A set of ids', () => {
  it('contains each once, however many there are', () => {
    const ids = new IdSet();
    const all = Array.from({ length: 50_000 }, (_, index) => `id ${index}`);
    expect(all.filter((id) => ids.add(id))).toHaveLength(all.length);
    expect(all.filter((id) => ids.add(id))).toEqual([]);
    expect(all.every((id) => ids.has(id))).toBe(true);
    expect(ids.has('id 50000')).toBe(false);
    expect(ids.size).toBe(all.length);
  });
});

import { type ResponseHead, ResponseIndex } from '../../../../../src/features/stores/shares/response-index.js';

const limits = { maxResponses: 10, maxBytes: 1000, ttlMs: 1000 };
const ada = 'key ada';

function headOf(id: string, more: Partial<ResponseHead> = {}): ResponseHead {
  return { id, client: ada, previous: null, createdAt: 0, bytes: 10, weight: 110, ...more };
}

describe('The index of responses', () => {
  it('counts all users of one key as one client', () => {
    const index = new ResponseIndex();
    index.put(headOf('b', { client: 'key bob', weight: 300 }), limits);
    for (let n = 0; n < 9; n++) index.put(headOf(`a${n}`, { client: `key app/${n}` }), limits);
    expect(index.put(headOf('a9', { client: 'key app/9' }), limits).evicted).toEqual(['a0']);
  });

  it('has the same content after a restore', () => {
    const heads = [
      headOf('a', { isRemoved: true }),
      headOf('b', { previous: 'a', createdAt: 5 }),
      headOf('x', { createdAt: 3 }),
    ];
    const index = new ResponseIndex();
    index.restoreHeads(heads);
    expect(index.has({ id: 'a', client: ada })).toBe(false);
    expect(index.chain({ id: 'b', client: ada }, -1)).toEqual(['b', 'a']);
    expect(index.expireHeads(3)).toEqual(['x']);
    expect(index.expireHeads(5)).toEqual(['a', 'b']);
  });

  it('expires a chain as a whole if the clock was set back before it was continued', () => {
    const index = new ResponseIndex();
    index.put(headOf('a', { createdAt: 5 }), limits);
    index.put(headOf('b', { previous: 'a', createdAt: 1 }), limits);
    expect(index.expireHeads(4)).toEqual([]);
    expect(index.expireHeads(5)).toEqual(['a', 'b']);
  });

  it('deletes a client, and no others of its key', () => {
    const index = new ResponseIndex();
    index.put(headOf('a', { client: 'key app/a' }), limits);
    index.put(headOf('b', { client: 'key app/b' }), limits);
    expect(index.removeOf('key app/a')).toEqual(['a']);
    expect(index.counts.count).toBe(1);
  });
});

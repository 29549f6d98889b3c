import { type ResponseHead, ResponseIndex } from '../../../../../src/primary/store/shares/response-index.js';

const limits = { maxResponses: 10, maxBytes: 1000, ttlMs: 1000 };
const ada = 'key ada';

function headOf(id: string, more: Partial<ResponseHead> = {}): ResponseHead {
  return { id, client: ada, previous: null, createdAt: 0, bytes: 10, weight: 110, ...more };
}

describe('The index of responses', () => {
  it('evicts responses of the client with the most, however many small ones it adds', () => {
    const index = new ResponseIndex();
    for (const id of ['b1', 'b2']) index.put(headOf(id, { client: 'key bob', bytes: 100, weight: 200 }), limits);
    const gone = Array.from({ length: 20 }, (_, n) => index.put(headOf(`a${n}`), limits).evicted).flat();
    expect(gone).toEqual(Array.from({ length: 12 }, (_, n) => `a${n}`));
    expect(index.counts).toEqual({ count: 10, bytes: 280 });
  });

  it('counts all users of one key as one client', () => {
    const index = new ResponseIndex();
    index.put(headOf('b', { client: 'key bob', weight: 300 }), limits);
    for (let n = 0; n < 9; n++) index.put(headOf(`a${n}`, { client: `key app/${n}` }), limits);
    expect(index.put(headOf('a9', { client: 'key app/9' }), limits).evicted).toEqual(['a0']);
  });

  it('evicts no response that another one continues, and a chain from its end', () => {
    const index = new ResponseIndex();
    const few = { ...limits, maxResponses: 4 };
    index.put(headOf('a'), few);
    index.put(headOf('b', { previous: 'a' }), few);
    index.put(headOf('c', { previous: 'b' }), few);
    index.put(headOf('x'), few);
    expect(['y', 'z'].map((id) => index.put(headOf(id), few).evicted)).toEqual([['c'], ['b']]);
  });

  it('does not evict a recently read chain', () => {
    const index = new ResponseIndex();
    const few = { ...limits, maxResponses: 3 };
    index.put(headOf('a'), few);
    index.put(headOf('b', { previous: 'a' }), few);
    index.put(headOf('x'), few);
    expect(index.chain({ id: 'b', client: ada }, -1)).toEqual(['b', 'a']);
    expect(index.put(headOf('y'), few).evicted).toEqual(['x']);
  });

  it('deletes the removed predecessors together with their last follower', () => {
    const index = new ResponseIndex();
    index.put(headOf('a'), limits);
    index.put(headOf('b', { previous: 'a' }), limits);
    index.put(headOf('c', { previous: 'b' }), limits);
    expect(index.remove({ id: 'b', client: ada })).toEqual([]);
    expect(index.remove({ id: 'b', client: ada })).toBeNull();
    expect(index.remove({ id: 'c', client: ada })).toEqual(['c', 'b']);
    expect(index.counts).toEqual({ count: 1, bytes: 10 });
  });

  it('has the same content after a restore', () => {
    const heads = [
      headOf('a', { isRemoved: true }),
      headOf('b', { previous: 'a', createdAt: 5 }),
      headOf('x', { createdAt: 3 }),
    ];
    const index = new ResponseIndex();
    index.restore(heads);
    expect(index.has({ id: 'a', client: ada })).toBe(false);
    expect(index.chain({ id: 'b', client: ada }, -1)).toEqual(['b', 'a']);
    expect(index.expire(3)).toEqual(['x']);
    expect(index.expire(5)).toEqual(['a', 'b']);
  });

  it('expires a chain as a whole if the clock was set back before it was continued', () => {
    const index = new ResponseIndex();
    index.put(headOf('a', { createdAt: 5 }), limits);
    index.put(headOf('b', { previous: 'a', createdAt: 1 }), limits);
    expect(index.expire(4)).toEqual([]);
    expect(index.expire(5)).toEqual(['a', 'b']);
  });

  it('deletes a client, and no others of its key', () => {
    const index = new ResponseIndex();
    index.put(headOf('a', { client: 'key app/a' }), limits);
    index.put(headOf('b', { client: 'key app/b' }), limits);
    expect(index.removeOf('key app/a')).toEqual(['a']);
    expect(index.counts.count).toBe(1);
  });
});

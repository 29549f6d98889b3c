import { requestIdFrom } from '../../../src/worker/http/request-id.js';

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe('a request id', () => {
  it.each(['a', 'A-Za_z0.9', 'x'.repeat(64), '6f1d-22'])("is the client's own where it is well formed: %s", (id) => {
    expect(requestIdFrom(id)).toBe(id);
  });

  it.each([undefined, '', 'x'.repeat(65), 'a b', 'a\n', 'é', 'a,b', '{"x":1}', '../x'])(
    'is a new UUID where it is not: %j',
    (header) => {
      expect(requestIdFrom(header)).toMatch(uuid);
    },
  );

  it('is never given twice', () => {
    const ids = Array.from({ length: 1000 }, () => requestIdFrom(undefined));
    expect(new Set(ids).size).toBe(1000);
  });
});

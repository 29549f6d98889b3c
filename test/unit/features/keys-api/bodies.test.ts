import { makeKeyRequest, textsIn } from '../../../../src/features/keys-api/bodies.js';

describe('The options in the body of a request for a key', () => {
  it('become texts of the keys file, and null removes an option', () => {
    const body = {
      scopes: ['ask', 'chat'] as ('ask' | 'chat')[],
      models: ['a', 'b:c'],
      queue: 0,
      rate: null,
      cost: '5/day',
    };
    expect(textsIn(body)).toEqual({ scopes: 'ask+chat', models: 'a+b:c', queue: '0', rate: null, cost: '5/day' });
    expect(textsIn({ subclients: true })).toEqual({ subclients: true });
    expect(textsIn({ subclients: false, group: undefined })).toEqual({ subclients: null });
  });

  it.each([{}, { name: 1 }, { name: 'x', previous: 'a' }, { name: 'x', own_keys: 1 }, { name: 'x', scopes: [] }])(
    'are refused if they have another form: %j',
    (body) => {
      expect(makeKeyRequest.safeParse(body).success).toBe(false);
    },
  );
});

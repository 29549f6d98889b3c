import { sampleOf } from '../../../../../src/features/demo/program/sample.js';
import { check } from '../../../../../src/primary/threads/schema-thread.js';

const city = { city: { type: 'string' } };
const address = { type: 'object', properties: city, required: ['city'] };

describe('The sample value of the demo', () => {
  it.each<[string, object, unknown]>([
    ['an object', { ...address, properties: { ...city, b: { type: 'boolean' } } }, { city: 'said', b: true }],
    ['an object without its type', { properties: { a: {} } }, { a: 'said' }],
    ['a constant', { const: 5, type: 'number' }, 5],
    ['a choice', { enum: ['red', 'blue'] }, 'red'],
    ['a list', { type: 'array', items: address, minItems: 2 }, [{ city: 'said' }, { city: 'said' }]],
    ['a short text', { type: 'string', maxLength: 2 }, 'sa'],
    ['a long text', { type: 'string', minLength: 6 }, 'said..'],
    ['a number within its bounds', { type: 'integer', minimum: 2.5, maximum: 9 }, 3],
    ['a number above a bound', { type: 'number', exclusiveMinimum: 7 }, 8],
    ['a number below a bound', { type: 'number', maximum: -3 }, -3],
    ['one of several types', { type: ['string', 'null'] }, 'said'],
    ['nothing', { type: 'null' }, null],
    ['one of several schemas', { anyOf: [address, { type: 'null' }] }, { city: 'said' }],
    ['exactly one of several schemas', { oneOf: [{ type: 'null' }, address] }, null],
    [
      'all of several schemas',
      { allOf: [address, { properties: { n: { type: 'integer' } } }] },
      { city: 'said', n: 0 },
    ],
    ['a definition', { $ref: '#/$defs/a~1b', $defs: { 'a/b': address } }, { city: 'said' }],
  ])('matches the schema of %s', (_, schema, value) => {
    expect(sampleOf(schema, 'said')).toEqual(value);
    const text = JSON.stringify(value);
    expect(check({ schema: JSON.stringify(schema), text })).toEqual({ kind: 'fits', value: text });
  });

  it('is finite if the schema refers to itself', () => {
    const tree = { type: 'object', properties: { child: { $ref: '#' } } };
    expect(JSON.stringify(sampleOf(tree, 'said')).length).toBeLessThan(200);
    const loop = { $ref: '#' };
    expect(sampleOf(loop, 'said')).toBeNull();
  });

  it.each([null, 5, true, [], 'x', { $ref: '#/none' }, { $ref: 'http://127.0.0.1:1/' }, { type: 'odd' }])(
    'exists for any schema: %j',
    (schema) => {
      expect(() => JSON.stringify(sampleOf(schema, 'said'))).not.toThrow();
    },
  );
});

import {
  modernSchema,
  movedTo,
  needsWrapper,
  unwrappedText,
  wrappedSchema,
  wrappedText,
} from '../../../../src/shared/text/json-schema.js';
import { lossySchemas } from '../../../support/doors/odd-schemas.js';

type Schema = Readonly<Record<string, unknown>>;

describe('A schema of another dialect', () => {
  it.each<[string, Schema, Schema]>([
    [
      'leaves out the draft',
      { $schema: 'http://json-schema.org/draft-04/schema#', type: 'object' },
      { type: 'object' },
    ],
    [
      'leaves out a text as id, and no property of that name',
      { id: 'urn:a', properties: { id: {} } },
      { properties: { id: {} } },
    ],
    ['keeps a bound that is a number', { minimum: 1, exclusiveMaximum: 5 }, { minimum: 1, exclusiveMaximum: 5 }],
    ['translates an exclusive bound', { minimum: 1, exclusiveMinimum: true }, { exclusiveMinimum: 1 }],
    ['leaves out a bound that does not exclude', { maximum: 1, exclusiveMaximum: false }, { maximum: 1 }],
    [
      'translates a tuple',
      { items: [{ type: 'null' }], additionalItems: false },
      { prefixItems: [{ type: 'null' }], items: false },
    ],
    [
      'translates dependencies',
      { dependencies: { a: ['b'], c: { minProperties: 2 } } },
      { dependentRequired: { a: ['b'] }, dependentSchemas: { c: { minProperties: 2 } } },
    ],
    [
      'adds dependencies to those of the newer keywords, with any name',
      JSON.parse('{"dependentSchemas":{"a":{}},"dependentRequired":7,"dependencies":{"__proto__":{},"b":["a"]}}'),
      JSON.parse('{"dependentSchemas":{"a":{},"__proto__":{}},"dependentRequired":{"b":["a"]}}'),
    ],
    [
      'adds null to a type',
      { type: 'string', enum: ['a'], nullable: true },
      { type: ['string', 'null'], enum: ['a', null] },
    ],
    ['adds null beside anything', { $ref: '#', nullable: true }, { anyOf: [{ $ref: '#' }, { type: 'null' }] }],
    ['allows each value for the type any', { type: ['any', 'string'], items: { type: 'any' } }, { items: {} }],
    ['leaves out required at a property', { properties: { a: { required: true } } }, { properties: { a: {} } }],
    [
      'translates a pattern of Python',
      { pattern: String.raw`\A(?P<a>x)(?P=a)\Z` },
      { pattern: String.raw`^(?<a>x)\k<a>$` },
    ],
    ['keeps a pattern that is valid without u', { pattern: String.raw`[\w-.]` }, { pattern: String.raw`[\w-.]` }],
    [
      'keeps a property called __proto__',
      JSON.parse('{"properties":{"__proto__":{"type":"any"}}}'),
      JSON.parse('{"properties":{"__proto__":{}}}'),
    ],
  ])('%s', (_, schema, expected) => {
    const { schema: modern, losses } = modernSchema(schema);
    expect(JSON.stringify(modern)).toBe(JSON.stringify(expected));
    expect(losses).toEqual([]);
  });

  it('preserves references to one of its parts, with any escapes', () => {
    const schema = { $defs: { 'a/b c': { type: 'null' } }, $ref: '#/$defs/a~1b%20c' };
    expect(modernSchema(schema)).toEqual({ schema, losses: [] });
  });

  it.each(lossySchemas)('reports a lost keyword, and describes it: $title', ({ schema, title }) => {
    const { schema: modern, losses } = modernSchema(schema);
    expect(losses).toEqual([expect.stringContaining(title)]);
    expect(modern).toMatchObject({ properties: { a: { description: expect.stringContaining('JSON Schema: {') } } });
  });

  it.each<[Schema, string]>([
    [{ type: 'objekt' }, 'type "objekt" is unknown'],
    [{ properties: 5 }, 'properties is not an object'],
    [{ properties: { a: null } }, 'null is not a schema'],
    [{ required: 5 }, 'required is not a list of names'],
    [{ required: ['a', 5] }, 'required is not a list of names'],
  ])('reports keywords that are invalid in every dialect: %j', (schema, loss) => {
    expect(modernSchema(schema).losses).toEqual([loss]);
  });

  it('is rejected with a RangeError if it is nested too deeply', () => {
    const deep = JSON.parse(`${'{"not":'.repeat(20_000)}{}${'}'.repeat(20_000)}`);
    expect(() => modernSchema(deep)).toThrow(RangeError);
  });
});

describe('A wrapper object', () => {
  it.each<[Schema, boolean]>([
    [{ type: 'object', properties: { a: {}, 'b.c-d_e': {} } }, false],
    [{ type: 'object' }, false],
    [{ type: 'object', properties: { 'a b': {} } }, true],
    [{ type: 'object', properties: { a: { properties: { 'a b': {} } } } }, false],
    [{ type: 'object', anyOf: [] }, true],
    [{ type: ['object', 'null'] }, true],
    [{ properties: {} }, true],
  ])('is needed for %j: %j', (schema, isNeeded) => {
    expect(needsWrapper(schema)).toBe(isNeeded);
  });

  it('adjusts the references of its schema', () => {
    const schema = { properties: { a: { $ref: '#/$defs/b' }, c: { $ref: '#' } } };
    const moved = { properties: { a: { $ref: '#/properties/input/$defs/b' }, c: { $ref: '#/properties/input' } } };
    expect(wrappedSchema(schema).properties).toEqual({ input: moved });
    expect(movedTo('#/x', { $ref: '#anchor' })).toEqual({ $ref: '#anchor' });
  });

  it.each(['{"a":12345678901234567890}', '[]', 'null', '{"input":1}'])('restores %s digit for digit', (json) => {
    expect(unwrappedText(wrappedText(json))).toBe(json);
  });

  it.each(['{"a":1}', '{"input":1,"b":2}', '{"input":', '', 'no JSON'])(
    'returns %j unchanged, which is not wrapped',
    (json) => {
      expect(unwrappedText(json)).toBe(json);
    },
  );
});

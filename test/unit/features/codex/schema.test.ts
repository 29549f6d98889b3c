import { strictSchema } from '../../../../src/features/codex/adapter.js';

const text = { type: 'string' };
const closed = { type: 'object', properties: { a: text }, required: ['a'], additionalProperties: false };

describe('A schema', () => {
  it.each([
    ['each property is required', closed],
    ['its parts are as closed', { ...closed, properties: { a: { type: 'array', items: closed } } }],
    [
      'it names parts and choices',
      { ...closed, $defs: { b: closed }, properties: { a: { anyOf: [text, { $ref: '#/$defs/b' }] } } },
    ],
  ])('is enforced by the API if %s', (_, schema) => {
    expect(strictSchema(JSON.stringify(schema))).toEqual(schema);
  });

  it.each([
    ['a property may be missing', { ...closed, required: [] }],
    ['others are allowed', { ...closed, additionalProperties: undefined }],
    ['a part is open', { ...closed, properties: { a: { type: 'object' } } }],
    ['an element is open', { ...closed, properties: { a: { type: 'array', items: { type: 'object' } } } }],
    ['it is not an object', { type: 'array', items: text }],
    ['it begins with a choice', { ...closed, anyOf: [closed] }],
    ['it holds a word that the API does not take', { ...closed, properties: { a: { ...text, not: {} } } }],
    ['its parts are none', { ...closed, properties: { a: true } }],
  ])('is described in the prompt if %s', (_, schema) => {
    expect(strictSchema(JSON.stringify(schema))).toBeUndefined();
  });
});

import { answerSchema, effort, maxSchemaBytes, schemaText } from '../../../src/shared/api/ask.js';
import { RelayError } from '../../../src/shared/errors.js';

describe('a schema as a job carries it', () => {
  it.each([{ type: 'object' }, { properties: { a: {} } }, { $ref: '#/$defs/a', $defs: { a: { type: 'object' } } }])(
    'is JSON, of objects: %j',
    (schema) => {
      expect(schemaText(schema, 'schema')).toBe(JSON.stringify(schema));
    },
  );

  it.each<[string, Record<string, unknown>, string]>([
    ['of another type', { type: 'array' }, 'must have an object at its root: "type": "object"'],
    ['of several types', { type: ['object', 'null'] }, 'must have an object at its root: "type": "object"'],
    ['of anything', {}, 'must have an object at its root: "type": "object"'],
    ['too large', { type: 'object', title: 'ä'.repeat(maxSchemaBytes / 2) }, 'must be 65536 bytes of JSON at most'],
  ])('is refused where it is %s', (_, schema, message) => {
    const fault = new RelayError('validation_error', `response_format.schema: ${message}`);
    expect(() => schemaText(schema, 'response_format.schema')).toThrow(fault);
  });

  it('is refused where it is nested too deeply to be written', () => {
    let schema: Record<string, unknown> = {};
    for (let depth = 0; depth < 100_000; depth++) schema = { items: schema };
    expect(() => schemaText({ type: 'object', ...schema }, 'schema')).toThrow('schema: is nested too deeply');
  });
});

describe('the fields of a request', () => {
  it.each([[[]], ['{}'], [null], [5]])('have a schema that is an object: not %j', (value) => {
    expect(answerSchema.safeParse(value).error?.issues[0]?.message).toBe('must be a JSON Schema, an object');
  });

  it('have one of three efforts', () => {
    expect(['low', 'medium', 'high'].map((value) => effort.safeParse(value).success)).toEqual([true, true, true]);
    expect(effort.safeParse('max').error?.issues[0]?.message).toBe('must be one of low, medium, high');
  });
});

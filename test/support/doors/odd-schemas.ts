/** Schemas as MCP servers and validators of other languages write them, each with a value that fits. */
export const oddSchemas: readonly {
  readonly title: string;
  readonly schema: Readonly<Record<string, unknown>>;
  readonly value: Readonly<Record<string, unknown>>;
}[] = [
  {
    title: 'a pattern that is valid only without the flag u',
    schema: objectOf({ file: { type: 'string', pattern: String.raw`^[\w-\.]+$` } }),
    value: { file: 'a.txt' },
  },
  {
    title: 'a pattern of Python',
    schema: objectOf({ day: { type: 'string', pattern: String.raw`\A(?P<year>\d{4})-\d\d\Z` } }),
    value: { day: '2026-11' },
  },
  { title: 'nullable without a type', schema: objectOf({ any: { nullable: true, minimum: 1 } }), value: { any: null } },
  {
    title: 'nullable with an enum',
    schema: objectOf({ size: { type: 'string', enum: ['s', 'm'], nullable: true } }),
    value: { size: null },
  },
  ...[
    'http://json-schema.org/draft-04/schema#',
    'http://json-schema.org/draft-06/schema#',
    'http://json-schema.org/schema#',
    'https://json-schema.org/draft-07/schema#',
    'https://example.com/own',
  ].map(($schema) => ({
    title: `the $schema ${$schema}`,
    schema: { $schema, ...objectOf({ a: { type: 'string' } }) },
    value: { a: 'x' },
  })),
  {
    title: 'exclusive bounds of draft 04',
    schema: objectOf({ n: { type: 'number', minimum: 0, exclusiveMinimum: true } }),
    value: { n: 1 },
  },
  {
    title: 'the keyword id',
    schema: { id: 'urn:thing', ...objectOf({ id: { type: 'string', id: '#name' } }) },
    value: { id: 'x' },
  },
  { title: 'a tuple of draft 07', schema: objectOf({ at: { items: [{ type: 'number' }] } }), value: { at: [1] } },
  {
    title: 'names of OData',
    schema: objectOf({ $filter: { type: 'string' }, $top: { type: 'integer' } }),
    value: { $filter: 'a eq 1', $top: 3 },
  },
  { title: 'names with brackets', schema: objectOf({ 'page[size]': { type: 'integer' } }), value: { 'page[size]': 3 } },
  { title: 'names that are not ASCII', schema: objectOf({ größe: { type: 'number' } }), value: { größe: 2 } },
  {
    title: 'a long name',
    schema: objectOf({ ['n'.repeat(80)]: { type: 'number' } }),
    value: { ['n'.repeat(80)]: 2 },
  },
  {
    title: 'anyOf at the top',
    schema: { ...objectOf({ a: {}, b: {} }), anyOf: [{ required: ['a'] }, { required: ['b'] }] },
    value: { b: 1 },
  },
  { title: 'oneOf at the top', schema: { type: 'object', oneOf: [{ required: ['a'] }] }, value: { a: 1 } },
  { title: 'allOf at the top', schema: { type: 'object', allOf: [{ required: ['a'] }] }, value: { a: 1 } },
  {
    title: 'a $ref at the top, and definitions',
    schema: {
      type: 'object',
      $ref: '#/definitions/p',
      definitions: { p: objectOf({ q: { $ref: '#/definitions/s' } }), s: { type: 'string' } },
    },
    value: { q: 'x' },
  },
];

/** Schemas that every translation loses something of, and the error for an answer with them. */
export const lossySchemas: typeof oddSchemas = [
  { title: 'enum has no values', schema: objectOf({ a: { enum: [] } }), value: { a: 1 } },
  { title: 'points to nothing', schema: objectOf({ a: { $ref: '#/components/schemas/A' } }), value: { a: 1 } },
  {
    title: 'is not a regular expression',
    schema: objectOf({ a: { type: 'string', pattern: '(?i)abc' } }),
    value: { a: 'ABC' },
  },
];

function objectOf(properties: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return { type: 'object', properties };
}

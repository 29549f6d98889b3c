import { SchemaChecker } from '../../../../src/primary/threads/schema-checker.js';
import { systemClock } from '../../../../src/shared/clock.js';

const checker = new SchemaChecker(systemClock, (error) => {
  throw error;
});
afterAll(() => checker.closeThread());

const person = { type: 'object', properties: { age: { type: 'integer', minimum: 0 } }, required: ['age'] };
const ofPerson = JSON.stringify(person);

/** Returns the fault of a schema; null if it is valid. */
function faultOf(schema: unknown): Promise<string | null> {
  return checker.faultOf(JSON.stringify(schema), 'key a');
}

function read(schema: unknown, text: string) {
  return checker.readValue(JSON.stringify(schema), text, 'key a');
}

it('The schemas of tools are checked once each, and the first invalid one is named by its place', async () => {
  const bad = '{"type":"objekt"}';
  expect(await checker.firstFault([ofPerson, ofPerson, '{}'], 'key a')).toBeNull();
  expect(await checker.firstFault([ofPerson, bad, bad], 'key a')).toMatchObject({ index: 1 });
  expect(await checker.firstFault([bad], 'key b')).toMatchObject({ index: 0 });
});

describe('A schema', () => {
  it.each<[string, object]>([
    ['without a draft', person],
    [
      'of draft 7',
      { $schema: 'http://json-schema.org/draft-07/schema#', definitions: { person }, $ref: '#/definitions/person' },
    ],
    ['of 2019-09', { $schema: 'https://json-schema.org/draft/2019-09/schema', ...person }],
    [
      'of 2020-12',
      { $schema: 'https://json-schema.org/draft/2020-12/schema', $defs: { person }, $ref: '#/$defs/person' },
    ],
    ['with a format and a keyword that nobody knows', { ...person, format: 'person', 'x-order': 1 }],
  ])('%s can be used', async (_, schema) => {
    expect(await faultOf(schema)).toBeNull();
    expect(await read(schema, '{"age":7}')).toEqual({ kind: 'fits', value: '{"age":7}' });
    expect(await read(schema, '{"age":-7}')).toMatchObject({ kind: 'bad-value' });
  });

  it.each<[string, unknown, string]>([
    [
      'has an unknown type',
      { type: 'objekt' },
      'schema is invalid: data/type must be equal to one of the allowed values',
    ],
    [
      'has properties that are none',
      { type: 'object', properties: 5 },
      'schema is invalid: data/properties must be object',
    ],
    ['refers to a part that it has not', { type: 'object', $ref: '#/$defs/none' }, 'it has a $ref that points nowhere'],
    [
      'refers to another host',
      { type: 'object', $ref: 'http://127.0.0.1:1/secret' },
      'it has a $ref that points nowhere',
    ],
    [
      'has a pattern that is none',
      { type: 'object', properties: { a: { pattern: '(' } } },
      'it has a pattern that is not a regular expression',
    ],
    [
      'is of a draft that is not known',
      { $schema: 'http://json-schema.org/draft-04/schema#' },
      'its $schema must be draft-07, 2019-09 or 2020-12',
    ],
    ['is checked later', { ...person, $async: true }, '$async is not known'],
  ])('is rejected if it %s', async (_, schema, fault) => {
    expect(await faultOf(schema)).toContain(fault);
    expect(await read(schema, '{}')).toMatchObject({ kind: 'bad-schema' });
  });

  it('is rejected with a short message, however long the fault is', async () => {
    const fault = (await faultOf({ type: 'object', properties: { ['a'.repeat(1000)]: { type: 'no' } } })) ?? '';
    expect(fault).toHaveLength(301);
  });

  it('may refer to itself', async () => {
    const tree = {
      type: 'object',
      properties: { children: { type: 'array', items: { $ref: '#' } } },
      required: ['children'],
    };
    expect(await faultOf(tree)).toBeNull();
    expect(await read(tree, '{"children":[{"children":[]}]}')).toMatchObject({ kind: 'fits' });
    expect(await read(tree, '{"children":[{}]}')).toMatchObject({
      kind: 'bad-value',
      fault: "/children/0 must have required property 'children'",
    });
  });
});

describe('An answer', () => {
  it.each([
    ['{"age":7}', '{"age":7}'],
    [' {"age": 7}\n', '{"age": 7}'],
    ['```json\n{"age":7}\n```', '{"age":7}'],
    ['```\n{"age":7}```\n', '{"age":7}'],
    ['```json \n\n{"age":7}\n\n```', '{"age":7}'],
    ['```json\n{"age":7}', '{"age":7}'],
    ['{"age":7} ```', '{"age":7}'],
    ['Sure: {"age":7}', '{"age":7}'],
    ['Sure {really}: {"age":7}. Is {} good?', '{"age":7}'],
    ['{"age":7}\n{"age": 7}', '{"age":7}'],
    ['{"age":"7"} was wrong, {"age":7} is right', '{"age":7}'],
    ['<think>{"age":6}?</think>{"age":7}', '{"age":7}'],
    ['Perhaps 6.</think>\n{"age":7}', '{"age":7}'],
    ['Thinking...\nOf {"age":6}.\n...done thinking.\n\n{"age":7}', '{"age":7}'],
    ['{"age":7,"said":"</think>{"}', '{"age":7,"said":"</think>{"}'],
    ['It is {"age":7,"said":"a \\"}{"}', '{"age":7,"said":"a \\"}{"}'],
  ])('is parsed from: %j', async (text, value) => {
    expect(await checker.readValue(ofPerson, text, 'key a')).toEqual({ kind: 'fits', value });
  });

  it.each([
    ['', 'the answer is not JSON'],
    ['Sure: {"age":7', 'the answer is not JSON'],
    ['[[{"age":7}', 'the answer is not JSON'],
    ['Either {"age":7} or {"age":8}', 'the answer has several values that fit: send only one'],
    ['It is {"age":"7"}', '/age must be integer'],
    ['7', 'the value must be object'],
    ['{}', "the value must have required property 'age'"],
    ['{"age":"7"}', '/age must be integer'], // types are not coerced
    [`{"age":7,"deep":${'['.repeat(5000)}${']'.repeat(5000)}}`, 'the answer must be nested at most 1000 levels deep'],
    [`{"age":7,"many":[${'[],'.repeat(500_000)}0]}`, 'the answer must contain at most 500000 values'],
  ])('that does not match has an error message: %.30j', async (text, fault) => {
    expect(await checker.readValue(ofPerson, text, 'key a')).toMatchObject({ kind: 'bad-value', fault });
  });

  it('is scanned once, however many newlines follow its opening fence', async () => {
    const text = `\`\`\`${'\n'.repeat(1_000_000)}x`;
    const fault = 'the answer is not JSON';
    expect(await checker.readValue(ofPerson, text, 'key a')).toMatchObject({ kind: 'bad-value', fault });
  });

  it.each(['[', '{"', '["\\', '{}', '[1,', '{"a":', '</think>', '<think>'])(
    'is searched for a value in linear time, whatever it repeats: %s',
    async (piece) => {
      const finding = await checker.readValue(ofPerson, `x${piece.repeat(1_000_000 / piece.length)}`, 'key a');
      expect(finding).toMatchObject({ kind: 'bad-value' });
      expect(finding).not.toMatchObject({ fault: expect.stringContaining('in time') });
    },
  );

  it('has its prose without the thought, unless a part of it is meant as a call', async () => {
    const prose = async (text: string) => {
      const finding = await checker.readValue(ofPerson, text, 'key a');
      return 'prose' in finding ? finding.prose : undefined;
    };
    expect(await prose('<think>Hm.</think> It rains. {"a":1}')).toBe('It rains. {"a":1}');
    expect(await prose('Now {"kind": "call", "name": "x"}')).toBeUndefined();
    expect(await prose('{"name":"x","arguments":{}}')).toBeUndefined();
  });

  it('is not checked against a format', async () => {
    expect(await read({ type: 'object', properties: { at: { format: 'date' } } }, '{"at":"soon"}')).toMatchObject({
      kind: 'fits',
    });
  });

  it('with a hostile pattern is abandoned, and the next check works', async () => {
    const hostile = { type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } };
    const startedMs = performance.now();
    const late = { kind: 'bad-value', fault: 'it could not be checked in time' };
    expect(await read(hostile, `{"a":"${'a'.repeat(50)}!"}`)).toEqual(late);
    expect(performance.now() - startedMs).toBeLessThan(5000);
    expect(await checker.readValue(ofPerson, '{"age":7}', 'key a')).toMatchObject({ kind: 'fits' });
  });
});

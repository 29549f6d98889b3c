import { knownToClaude } from '../../../../../../src/primary/cli/adapters/claude/writer.js';

const text = { type: 'string' };

describe('A schema for claude', () => {
  it('is unchanged if draft 07 has all its keywords', () => {
    const schema = {
      ...{ type: 'object', title: 'person', required: ['a'], additionalProperties: false },
      properties: { a: { $ref: '#/$defs/n' }, prefixItems: { enum: [{ 'x-order': 1 }] } },
      $defs: { n: { anyOf: [text, { type: 'null' }], default: { 'x-order': 1 } } },
    };
    expect(knownToClaude(schema)).toEqual(schema);
  });

  it('names no draft', () => {
    const schema = { type: 'object', properties: { $schema: text } };
    expect(knownToClaude({ $schema: 'https://json-schema.org/draft/2020-12/schema', ...schema })).toEqual(schema);
  });

  it('describes keywords unknown to draft 07 in words, at any depth', () => {
    const pair = { type: 'array', description: 'A pair.', prefixItems: [text, text], items: false };
    const schema = { type: 'object', properties: { pair }, allOf: [{ 'x-order': 1 }], unevaluatedProperties: false };
    expect(knownToClaude(schema)).toEqual({
      type: 'object',
      properties: {
        pair: {
          type: 'array',
          description:
            'A pair.\nOf its JSON Schema: {"prefixItems":[{"type":"string"},{"type":"string"}],"items":false}',
        },
      },
      allOf: [{ description: 'Of its JSON Schema: {"x-order":1}' }],
      description: 'Of its JSON Schema: {"unevaluatedProperties":false}',
    });
  });
});

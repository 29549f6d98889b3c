import { DynamicTools, itemsOf, nameForClient, nameForCodex } from '../../../../src/features/codex/input.js';

const tool = (schema: object, description = 'Notes.') => ({
  name: 'note',
  description,
  schema: JSON.stringify(schema),
});

describe('A tool of a client', () => {
  it.each(['mcp', 'mcp__x__y', 'exec_command', 'shell_command'])('is renamed for codex if it is %s', (name) => {
    expect(nameForCodex(name)).not.toBe(name);
    expect(nameForClient(nameForCodex(name))).toBe(name);
  });

  it.each(['Bash', 'mcpx', 'Note', 'exec'])('retains the name %s', (name) => {
    expect([nameForCodex(name), nameForClient(name)]).toEqual([name, name]);
  });

  it('retains its name even if it resembles the renamed form of another', () => {
    const tools = new DynamicTools();
    tools.introduce([{ ...tool({ type: 'object' }), name: 'Mcp__x' }]);
    expect(tools.nameOf('Mcp__x')).toBe('Mcp__x');
  });

  it.each([
    ['a keyword that codex drops', { type: 'object', properties: { who: { type: 'string', minLength: 2 } } }, true],
    ['more than codex passes on', { type: 'object', description: 'x'.repeat(3000) }, true],
    ['what codex passes on', { type: 'object', properties: { who: { enum: ['a'] } }, required: ['who'] }, false],
  ])('includes in its description a schema with %s', (_, schema, isTold) => {
    const [{ description } = { description: '' }] = new DynamicTools().introduce([tool(schema)]) as readonly {
      description: string;
    }[];
    expect(description).toBe(isTold ? `Notes.\n\nJSON Schema of the arguments: ${JSON.stringify(schema)}` : 'Notes.');
  });
});

it('An earlier message becomes one item for each call and result, and for its text', () => {
  const call = { id: 'A', name: 'mcp', input: '{}' };
  expect(itemsOf({ role: 'assistant', text: '', calls: [call] })).toEqual([
    { type: 'function_call', call_id: 'A', name: 'Mcp', arguments: '{}' },
  ]);
  const image = { mediaType: 'image/png', data: 'AAAA', at: 2 } as const;
  const results = [{ id: 'A', text: 'a ', images: [image], isError: false }];
  expect(itemsOf({ role: 'user', text: 'And?', results })).toEqual([
    {
      type: 'function_call_output',
      call_id: 'A',
      output: [
        { type: 'input_text', text: 'a ' },
        { type: 'input_image', image_url: 'data:image/png;base64,AAAA' },
      ],
    },
    { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'And?' }] },
  ]);
});

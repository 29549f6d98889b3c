import { parsedTools, type SentTool, samplingOf } from '../../../../src/features/doors/tool-offer.js';
import type { ToolOffer } from '../../../../src/shared/job.js';
import { writtenCall } from '../../../../src/worker/jobs/answer-format.js';

const free = { choice: 'auto', path: 'tool_choice', isParallel: true } as const;

function sent(name: string | null, more: Partial<SentTool> = {}): SentTool {
  return { path: `tools.${name}`, kind: 'function', type: 'function', name, ...more };
}

function tool(name: string, schema: object = { type: 'object' }) {
  return { name, description: '', schema: JSON.stringify(schema) };
}

describe('The tools of a request', () => {
  it('are offered with their descriptions and schemas', () => {
    const schema = { properties: { city: { type: 'string' } } };
    const { offer, forms, dropped } = parsedTools([sent('a', { description: 'does it', schema }), sent('b')], free);
    const described = { ...tool('a', { type: 'object', ...schema }), description: 'does it' };
    expect(offer).toEqual({ tools: [described, tool('b')], choice: 'auto', isParallel: true });
    expect([forms, dropped]).toEqual([{}, []]);
  });

  it('are undefined if the request has none', () => {
    expect(parsedTools([], free)).toEqual({ offer: undefined, forms: {}, dropped: [] });
    expect(parsedTools([], { ...free, choice: 'none' }).offer).toBeUndefined();
  });

  it('omit provider-hosted ones', () => {
    const search = sent('web_search', { kind: 'provider', type: 'web_search' });
    expect(parsedTools([search, sent('a'), search], free)).toMatchObject({
      offer: { tools: [{ name: 'a' }] },
      dropped: ['web_search'],
    });
    expect(() => parsedTools([search], free)).toThrow('web_search can only run on');
    expect(parsedTools([search], { ...free, choice: 'none' }).offer).toBeUndefined();
    const declared = { ...search, search: { path: 'tools.0' } };
    expect(parsedTools([declared], free)).toEqual({
      offer: undefined,
      forms: {},
      dropped: [],
      search: declared.search,
    });
    const beside = parsedTools([declared, sent('a')], free);
    expect([beside.dropped, beside.search]).toEqual([['web_search'], undefined]);
    expect(parsedTools([declared], { ...free, choice: 'none' }).search).toBeUndefined();
  });

  it('are refused if their patterns take long to read', () => {
    const classes = (count: number) => ({ properties: { a: { pattern: `[${String.raw`\p{L}`.repeat(count)}]` } } });
    expect(parsedTools([sent('a', { schema: classes(100) })], free).offer?.tools).toHaveLength(1);
    const two = [sent('a', { schema: classes(50) }), sent('b', { schema: classes(51) })];
    expect(() => parsedTools(two, free)).toThrow(String.raw`tools: must have at most 100 \p{…} in its patterns`);
  });

  it('may accept text, or belong to a namespace: their calls are converted back', () => {
    const tools = [sent('run', { kind: 'custom' }), sent('add', { namespace: 'crm' }), sent('plain')];
    const { offer, forms } = parsedTools(tools, free);
    expect(offer?.tools.map(({ name }) => name)).toEqual(['run', 'crm__add', 'plain']);
    expect(JSON.parse(offer?.tools[0]?.schema ?? '')).toMatchObject({ required: ['input'] });
    const written = (name: string, input: string) => writtenCall({ id: '1', name, input }, forms);
    expect(written('run', '{"input":"ls"}')).toEqual({ id: '1', name: 'run', isCustom: true, input: 'ls' });
    expect(written('run', 'no JSON')).toMatchObject({ input: 'no JSON' });
    expect(written('crm__add', '{}')).toEqual({ id: '1', name: 'add', namespace: 'crm', isCustom: false, input: '{}' });
    expect(written('crm__add', '')).toMatchObject({ input: '{}' });
    expect(written('plain', '')).toEqual({ id: '1', name: 'plain', isCustom: false, input: '{}' });
    expect(written('toString', '{}')).toMatchObject({ name: 'toString', isCustom: false });
  });

  const large = 'x'.repeat(262_144);

  it.each<[string, readonly SentTool[], ToolOffer['choice'], string]>([
    ['has no name', [sent(null)], 'auto', 'tools.null.name: must be sent'],
    ['has an odd name', [sent('a b')], 'auto', 'must be 1 to 128 letters'],
    ['has a long name', [sent('a'.repeat(129))], 'auto', 'must be 1 to 128 letters'],
    ['has the name of another', [sent('a'), sent('a')], 'auto', 'must not be the name of another tool'],
    ['takes no object', [sent('a', { schema: { type: 'string' } })], 'auto', 'must have the schema of an object'],
    ['is one of too many', Array.from({ length: 129 }, (_, at) => sent(`t${at}`)), 'auto', 'must be at most 128'],
    ['has a large schema', [sent('a', { schema: { enum: [large] } })], 'auto', 'must be at most 262144 bytes in total'],
    ['is too large', [sent('a', { description: large })], 'auto', 'must be at most 262144 bytes in total'],
    ['is required of none', [], 'required', 'needs tools'],
    ['is named and not offered', [sent('a')], { name: 'b' }, 'must name one of the tools'],
  ])('are rejected if one %s', (_, tools, choice, message) => {
    expect(() => parsedTools(tools, { ...free, choice })).toThrow(message);
  });
});

describe('The sampling options of a request', () => {
  it('are undefined, or contain only the sent ones', () => {
    expect(samplingOf({ temperature: null, topP: undefined })).toBeUndefined();
    expect(samplingOf({ temperature: 0, topP: null, maxTokens: 5 })).toEqual({ temperature: 0, maxTokens: 5 });
  });
});

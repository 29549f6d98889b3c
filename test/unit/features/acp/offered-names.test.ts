import { toolsIn } from '../../../../src/features/acp/offered-names.js';

describe('The tools in a request to a model', () => {
  it.each([
    ['Chat Completions', { tools: [{ type: 'function', function: { name: 'read' } }] }, ['read']],
    ['Responses', { tools: [{ type: 'function', name: 'read' }, { type: 'web_search' }] }, ['read', 'web_search']],
    ['Messages', { tools: [{ name: 'read', input_schema: {} }] }, ['read']],
    [
      'Gemini',
      { tools: [{ functionDeclarations: [{ name: 'read' }] }, { googleSearch: {} }] },
      ['read', 'googleSearch'],
    ],
    ['an empty list', { tools: [{ functionDeclarations: [] }] }, []],
    ['no list', {}, []],
    ['an unknown form', { tools: ['read', {}] }, ['unnamed', 'unnamed']],
  ])('are found in the format of %s', (_, body, names) => {
    expect(toolsIn(JSON.stringify(body))).toEqual(names);
  });

  it('are none if the body is no JSON object', () => {
    expect([toolsIn('['), toolsIn('null')]).toEqual([[], []]);
  });
});

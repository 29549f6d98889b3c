import { refuseTools, toolsIn } from '../../../../../../src/primary/cli/adapters/common/offered-tools.js';

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

  it('are refused with the version and at most ten names', () => {
    const names = Array.from({ length: 12 }, (_, index) => `t${index}`);
    const message = 'version 7.0 of qwen cannot be used safely: it offers the model its own tools:';
    expect(() => refuseTools('qwen', '7.0', ['read'])).toThrow(`${message} read`);
    expect(() => refuseTools('qwen', '7.0', names)).toThrow(`${message} ${names.slice(0, 10).join(', ')}, …`);
    expect(() => refuseTools('qwen', null, ['read'])).toThrow('this version of qwen cannot be used safely');
    expect(() => refuseTools('qwen', '7.0', [])).not.toThrow();
  });
});

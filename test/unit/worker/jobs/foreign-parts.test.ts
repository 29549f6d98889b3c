import { foreignParts, foreignTypes } from '../../../../src/worker/jobs/foreign-parts.js';

const source = { type: 'text', media_type: 'text/plain', data: 'a page' };

describe('A message part that only another provider supports', () => {
  it.each<[string, object]>([
    ['', { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'rain' } }],
    [
      'Rain (https://example.com)',
      {
        type: 'web_search_tool_result',
        content: [{ type: 'web_search_result', title: 'Rain', url: 'https://example.com', encrypted_content: 'x' }],
      },
    ],
    ['out\n\nerr', { type: 'code_execution_tool_result', content: { stdout: 'out', stderr: 'err', return_code: 0 } }],
    ['a page', { type: 'web_fetch_tool_result', content: { url: 'x', content: { type: 'document', source } } }],
    ['so far', { type: 'compaction', content: 'so far' }],
    ['a file', { type: 'mcp_tool_result', content: [{ type: 'text', text: 'a file' }] }],
    ['done', { type: 'mcp_call', name: 'run', arguments: '{}', output: 'done' }],
    ['42', { type: 'code_interpreter_call', code: 'print(42)', outputs: [{ type: 'logs', logs: '42' }] }],
    ['found', { type: 'file_search_call', results: [{ filename: 'a', text: 'found' }] }],
    ['', { type: 'image_generation_call', result: 'iVBORw0KGgo' }],
    ['', { type: 'document', title: 'A', source: { type: 'base64', data: 'JVBERi0' } }],
    ['a\ufffd', { type: 'text_of_tomorrow', text: 'a\0' }],
  ])('is replaced by its text %j', (text, part) => {
    expect(foreignParts({ ...part }, 'nothing')).toEqual(text === '' ? [] : [{ type: 'text', text }]);
  });

  it('without a text is omitted, replaced by a note, or rejected', () => {
    const part = { type: 'document' };
    expect(foreignParts(part, 'a-note')).toEqual([{ type: 'text', text: '(document: not shown)' }]);
    expect(foreignParts(part, 'refused')).toBeNull();
  });

  it('is listed once by its type', () => {
    const parts = ['text', 'compaction', 'compaction', 'a b'].map((type) => ({ type }));
    const known = new Set(['text']);
    expect(foreignTypes('messages.content', parts, known)).toEqual([
      'messages.content.compaction',
      'messages.content.(odd name)',
    ]);
  });
});

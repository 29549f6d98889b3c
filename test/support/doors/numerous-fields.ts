import { assistant, type Kind, maxValues, named, times, user } from './many.js';

/** Largest number of lines in a file of 2 MB. */
const maxLines = 100_000;

const asked = { model: 'eliza', messages: [user('Hi')] };
const chat = (more: object) => ({ ...asked, ...more });
const responses = (more: object) => ({ model: 'eliza', input: 'Hi', ...more });
const messages = (more: object) => ({ ...asked, max_tokens: 9, ...more });
const said = (content: unknown) => [user('Hi'), assistant(content), user('Hi')];
const rpc = (params: object) => ({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
const line = (id: string) => ({ custom_id: id, method: 'POST', url: '/v1/chat/completions', body: asked });

const chatFields: readonly Kind[] = [
  ['functions', maxValues / 3, (n) => chat({ functions: times(n, (i) => ({ name: `f${i}` })) })],
  [
    'tools of one name',
    maxValues / 4,
    (n) => chat({ tools: times(n, () => ({ type: 'function', function: { name: 'f' } })) }),
  ],
  [
    'tools of other kinds',
    maxValues / 4,
    (n) => chat({ tools: times(n, (i) => ({ type: 'custom', custom: { name: `f${i}` } })) }),
  ],
  ['modalities', maxValues, (n) => chat({ modalities: times(n, () => 'text') })],
  ['stop sequences', maxValues, (n) => chat({ stop: times(n, (i) => `s${i}`) })],
  ['names of persons', maxValues / 4, (n) => chat({ messages: times(n, (i) => ({ ...user('Hi'), name: `n${i}` })) })],
  [
    'names of tools in the history',
    maxValues / 12,
    (n) =>
      chat({
        messages: [
          user('Hi'),
          ...times(n, (i) => [
            {
              role: 'assistant',
              content: null,
              tool_calls: [{ id: 'c', type: 'function', function: { name: `a b${i}`, arguments: '{}' } }],
            },
            { role: 'tool', tool_call_id: 'c', name: `a b${i}`, content: 'x' },
          ]).flat(),
        ],
      }),
  ],
  [
    'annotations',
    maxValues / 3,
    (n) => chat({ messages: said('x').map((each) => ({ ...each, annotations: times(n, () => ({ type: 'a' })) })) }),
  ],
  [
    'names in a guided schema',
    maxValues / 20,
    (n) => chat({ guided_json: JSON.stringify({ type: 'object', properties: named(n, () => ({ type: 'null' })) }) }),
  ],
];

const responsesFields: readonly Kind[] = [
  [
    'tools of an item',
    maxValues / 4,
    (n) =>
      responses({
        input: [
          { type: 'additional_tools', tools: times(n, (i) => ({ type: 'function', name: `f${i}` })) },
          user('Hi'),
        ],
      }),
  ],
  [
    'tools of a namespace',
    maxValues / 4,
    (n) =>
      responses({
        tools: [{ type: 'namespace', name: 'a', tools: times(n, (i) => ({ type: 'function', name: `f${i}` })) }],
      }),
  ],
  [
    'namespaces',
    maxValues / 5,
    (n) => responses({ tools: times(n, (i) => ({ type: 'namespace', name: `n${i}`, tools: [] })) }),
  ],
  [
    'allowed tools',
    maxValues / 4,
    (n) =>
      responses({
        tools: times(100, (i) => ({ type: 'function', name: `f${i}` })),
        tool_choice: {
          type: 'allowed_tools',
          mode: 'auto',
          tools: times(n, (i) => ({ type: 'function', name: `f${i % 100}` })),
        },
      }),
  ],
  ['included fields', maxValues, (n) => responses({ include: times(n, (i) => `f${i}`) })],
  [
    'citations',
    maxValues / 4,
    (n) =>
      responses({
        input: said([
          { type: 'output_text', text: 'x', annotations: times(n, () => ({ type: 'url_citation', url: 'u' })) },
        ]),
      }),
  ],
  [
    'summaries of a thought',
    maxValues / 4,
    (n) =>
      responses({
        input: [{ type: 'reasoning', summary: times(n, () => ({ type: 'summary_text', text: 'x' })) }, user('Hi')],
      }),
  ],
  [
    'searches',
    maxValues / 6,
    (n) =>
      responses({
        input: [
          ...times(n, (i) => ({ type: 'web_search_call', id: `w${i}`, action: { type: 'search', query: 'x' } })),
          user('Hi'),
        ],
      }),
  ],
  [
    'domains of a search',
    maxValues,
    (n) => responses({ tools: [{ type: 'web_search', filters: { allowed_domains: times(n, (i) => `d${i}.org`) } }] }),
  ],
];

const messagesFields: readonly Kind[] = [
  ['system blocks', maxValues / 3, (n) => messages({ system: times(n, () => ({ type: 'text', text: 'x' })) })],
  [
    'citations of a block',
    maxValues / 4,
    (n) =>
      messages({
        messages: said([{ type: 'text', text: 'x', citations: times(n, () => ({ type: 'char_location', a: 1 })) }]),
      }),
  ],
  [
    'documents',
    maxValues / 8,
    (n) =>
      messages({
        messages: [
          user([
            ...times(n, (i) => ({ type: 'document', title: `t${i}`, source: { type: 'text', data: 'x' } })),
            { type: 'text', text: 'Hi' },
          ]),
        ],
      }),
  ],
  [
    'parts of a document',
    maxValues / 4,
    (n) => {
      const content = times(n, () => ({ type: 'text', text: 'x' }));
      return messages({
        messages: [user([{ type: 'document', source: { type: 'content', content }, citations: { enabled: true } }])],
      });
    },
  ],
  [
    'results of a search',
    maxValues / 5,
    (n) => {
      const content = times(n, (i) => ({ type: 'web_search_result', url: `https://e.org/${i}`, title: 'x' }));
      return messages({
        messages: said([
          { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'x' } },
          { type: 'web_search_tool_result', tool_use_id: 's', content },
          { type: 'text', text: 'x' },
        ]),
      });
    },
  ],
  [
    'domains of a search',
    maxValues,
    (n) =>
      messages({
        tools: [{ type: 'web_search_20250305', name: 'web_search', allowed_domains: times(n, (i) => `d${i}.org`) }],
      }),
  ],
  ['fields of an input', maxValues, (n) => messages({ messages: said([toolUse(named(n, () => 1))]) })],
];

function toolUse(input: object): object {
  return { type: 'tool_use', id: 'c', name: 'f', input };
}

const ollamaFields: readonly Kind[] = [
  [
    'tools',
    maxValues / 5,
    (n) => chat({ tools: times(n, (i) => ({ type: 'function', function: { name: `f${i}` } })) }),
  ],
  ['stop sequences', maxValues, (n) => chat({ options: { stop: times(n, (i) => `s${i}`) } })],
  ['names in a format', maxValues / 20, (n) => chat({ format: { type: 'object', properties: named(n, () => ({})) } })],
  [
    'values in arguments',
    maxValues,
    (n) =>
      chat({
        messages: [
          user('Hi'),
          { role: 'assistant', content: '', tool_calls: [{ function: { name: 'f', arguments: named(n, () => 1) } }] },
          { role: 'tool', content: 'x' },
        ],
      }),
  ],
];

/** Fields of the APIs for files, batches and keys, whose work no model gets. */
const dataFields: readonly (readonly [path: string, ...Kind])[] = [
  ['/v1/batches', 'metadata', maxValues, (n) => ({ metadata: named(n, () => 'x') })],
  [
    '/v1/messages/batches',
    'requests',
    maxValues / 4,
    (n) => ({ requests: times(n, (i) => ({ custom_id: `c${i}`, params: {} })) }),
  ],
  ['/v1/messages/batches', 'invalid requests', maxValues, (n) => ({ requests: times(n, () => 1) })],
  [
    '/v1/messages/batches',
    'fields of a request',
    maxValues,
    (n) => ({ requests: [{ custom_id: 'c', params: named(n, () => 1) }] }),
  ],
  ['/keys', 'models', maxValues, (n) => ({ name: 'k', models: times(n, (i) => `m${i}`) })],
  ['/keys', 'scopes', maxValues, (n) => ({ name: 'k', scopes: times(n, () => 'ask') })],
  ['/keys', 'accounts', maxValues, (n) => ({ name: 'k', accounts: times(n, (i) => `a${i}`) })],
  [
    'a line of a batch',
    'messages',
    maxValues / 3,
    (n) => ({ ...line('a'), body: chat({ messages: times(n, () => user('Hi')) }) }),
  ],
  ['a line of a batch', 'unknown fields', maxValues, (n) => ({ ...line('a'), ...named(n, () => 1) })],
  ['/v1/files', 'lines', maxLines, (n) => times(n, (i) => `{"custom_id":"c${i}"}\n`).join('')],
  ['/v1/files', 'blank lines', maxLines * 20, (n) => '\n'.repeat(n)],
  ['/v1/files', 'lines of brackets', maxLines, (n) => '{"a":[[[[[\n'.repeat(n)],
  ['/v1/files', 'fields of a line', maxLines, (n) => `{${times(n, (i) => `"custom_id":"c${i}"`).join(',')}}`],
  ['/v1/files', 'values of a line', maxLines * 10, (n) => '[],'.repeat(n)],
  ['/v1/files', 'escapes in an ID', maxLines, (n) => `{"custom_id":"${'\\u0061'.repeat(n)}"}`],
  ['/v1/files', 'almost boundaries of a form', maxLines, (n) => '\r\n--edg'.repeat(n)],
];

const withPath =
  (path: string) =>
  (kind: Kind): readonly [path: string, ...Kind] => [path, ...kind];

/** Fields that only one API has, and those of data without a job. */
export const otherFields: readonly (readonly [path: string, ...Kind])[] = [
  ...chatFields.map(withPath('/v1/chat/completions')),
  ...responsesFields.map(withPath('/v1/responses')),
  ...messagesFields.map(withPath('/v1/messages')),
  ...ollamaFields.map(withPath('/api/chat')),
  [
    '/api/generate',
    'stop sequences',
    maxValues,
    (n) => ({ model: 'eliza', prompt: 'Hi', options: { stop: times(n, () => 'x') } }),
  ],
  ['/v1/completions', 'prompts', maxValues, (n) => ({ model: 'eliza', prompt: times(n, () => 'Hi') })],
  ['/v1/completions', 'unknown fields', maxValues, (n) => ({ model: 'eliza', prompt: 'Hi', ...named(n, () => 1) })],
  [
    '/v1/completions',
    'names of a format',
    maxValues / 20,
    (n) => ({
      ...{ model: 'eliza', prompt: 'Hi' },
      guided_json: { type: 'object', properties: named(n, () => ({})) },
    }),
  ],
  [
    '/chat',
    'images',
    maxValues / 3,
    (n) => ({ message: 'Hi', images: times(n, () => ({ media_type: 'image/png', data: 'x' })) }),
  ],
  ['/chat', 'files', maxValues / 2, (n) => ({ message: 'Hi', files: times(n, () => ({ text: 'x' })) })],
  [
    '/mcp',
    'unknown parameters',
    maxValues,
    (n) => rpc({ name: 'ask', arguments: { prompt: 'Hi' }, ...named(n, () => 1) }),
  ],
  [
    '/mcp',
    'names of a schema',
    maxValues / 20,
    (n) =>
      rpc({ name: 'ask', arguments: { prompt: 'Hi', schema: { type: 'object', properties: named(n, () => ({})) } } }),
  ],
  ...dataFields,
];

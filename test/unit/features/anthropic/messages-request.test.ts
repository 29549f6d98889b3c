import {
  type MessagesRequest,
  messagesRequest,
  parseMessages,
} from '../../../../src/features/anthropic/messages-request.js';
import { RelayError } from '../../../../src/shared/errors.js';
import type { ToolOffer } from '../../../../src/shared/job.js';
import type { ParsedRequest } from '../../../../src/worker/jobs/job-request.js';
import { pdfOf } from '../../../support/basics/pdf.js';
import {
  assistant,
  plainJob,
  png,
  pngAt,
  system,
  textPart as text,
  user,
} from '../../../support/doors/sdk-messages.js';
import { documentInspector } from '../../../support/jobs/inspected-documents.js';

const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } };
const ofCity = { type: 'object', properties: { city: { type: 'string' } } };
const weather = { name: 'weather', description: 'Tells it', input_schema: ofCity };
const cook = { name: 'cook', input_schema: { type: 'object' } };
const browse = { type: 'web_fetch_20250910', name: 'web_fetch' };
const search = { type: 'web_search_20250305', name: 'web_search' };
const format = { type: 'json_schema', schema: ofCity };
const weatherTool = { name: 'weather', description: 'Tells it', schema: JSON.stringify(ofCity) };
const cookTool = { name: 'cook', description: '', schema: '{"type":"object"}' };
const call = (id: string, name = 'weather', input: object | undefined = { city: 'Bonn' }) => ({
  ...{ type: 'tool_use', id, name, input },
});
const result = (id: string, content: unknown = 'windy', more: object = {}) => ({
  ...{ type: 'tool_result', tool_use_id: id, content, ...more },
});
/** Fields of a request with a tool, whose last messages are an answer and what the user sends after it. */
const following = (answer: unknown, ...next: unknown[]) => ({
  messages: [user('Hi'), assistant(answer), ...next.map(user)],
});
const afterCalls = (answer: unknown, ...next: unknown[]) => ({ tools: [weather], ...following(answer, ...next) });
/** History of such a request. */
const answered = (text: string, ...calls: object[]) => ({
  history: [
    { role: 'user', text: 'Hi' } as const,
    { role: 'assistant', text, ...(calls.length > 0 && { calls }) } as never,
  ],
});
const made = (id: string, name = 'weather', input = '{"city":"Bonn"}') => ({ id, name, input });

function asked(fields: object): ParsedRequest {
  const body = { model: 'eliza', messages: [user('Hi')], ...fields };
  return parseMessages(messagesRequest.parse(body) as MessagesRequest);
}

const choosing = (tool_choice: object | null, ...tools: object[]) => ({
  ...{ tools: tools.length > 0 ? tools : [weather], tool_choice },
});
const thinks = (budget_tokens: number) => ({ type: 'enabled', budget_tokens });
const pdfData = pdfOf({ pages: 2 }).toString('base64');
const pdf = { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: pdfData } };
const says = (...parts: unknown[]) => ({ messages: [user(parts)] });
const sends = (source: unknown) => says({ type: 'image', source });
const marked = (part: object, ttl?: string) => ({ ...part, cache_control: { type: 'ephemeral', ttl } });
const ends = { ttl: '5m', restLength: 0 };
const reminder = '<system-reminder>\n99 left\n</system-reminder>';
const found = (tool_name: string) => ({ type: 'tool_reference', tool_name });
const callable = (name: string) => `The tool ${name} can be called now.`;

describe('A request to the Messages API', () => {
  it('becomes a job with all of its values', () => {
    const { job, model, ignored } = asked({
      system: [text('Be kind.'), text('Be brief.')],
      ...following([text('Hello.')], [image, text('Who is it?')]),
      ...{ stop_sequences: ['END', ''], stream: true, metadata: { user_id: 'ada' } },
      ...{ max_tokens: 100, temperature: 0.5, top_p: 0.9, top_k: 5 },
    });
    const expected = plainJob({
      ...{ text: 'Who is it?', images: pngAt(0), system: 'Be kind.\n\nBe brief.', stop: ['END'], stream: true },
      ...{ ...answered('Hello.'), sampling: { temperature: 0.5, topP: 0.9, maxTokens: 100 } },
    });
    expect(job).toEqual(expected);
    expect(model).toBe('eliza');
    expect(ignored).toEqual(['metadata', 'top_k']);
  });

  it.each<[string, object, Partial<ParsedRequest['job']>]>([
    ['a system text', { system: 'Be kind.' }, { system: 'Be kind.' }],
    ['no system text', { system: null }, { system: undefined }],
    [
      'a message of the role system',
      { system: 'Be kind.', messages: [user('Hi'), system([text('Be brief.')]), user('Well?')] },
      { system: 'Be kind.\n\nBe brief.', text: 'Hi\n\nWell?', history: [] },
    ],
    [
      'a message of the role system behind results, as Claude Code sends one with each round',
      {
        tools: [weather],
        messages: [
          ...[user('Hi'), system('You are at home.'), assistant([call('1')]), user([result('1', 'rain')])],
          system([text(reminder)]),
        ],
      },
      { system: 'You are at home.', text: '', results: [{ id: '1', text: `rain\n\n${reminder}`, isError: false }] },
    ],
    [
      'tools that the client has found for the model',
      afterCalls([call('1')], [result('1', ['WebFetch', 'Monitor'].map(found))]),
      { results: [{ id: '1', text: ['WebFetch', 'Monitor'].map(callable).join('\n\n'), isError: false }] },
    ],
    [
      'two messages of a role in a row',
      { messages: [user('One'), user([text('Two'), image]), assistant(''), user('Three')] },
      { text: 'One\n\nTwo\n\nThree', images: pngAt(8), history: [] },
    ],
    [
      'a call of a tool that is offered no more, which is told as text',
      following([text('I see.'), call('1')], 'So?'),
      answered('I see.\n\n{"city":"Bonn"}'),
    ],
    [
      'the results of such calls, which are told as text',
      following(
        [call('1', 'weather', {}), call('2', 'map', {})],
        [
          result('2', [text('Here'), image]),
          result('1', 'no wind', { is_error: true }),
          { type: 'tool_result', tool_use_id: '3' },
          text('So?'),
        ],
      ),
      {
        ...answered('{}\n\n{}'),
        text: 'Result of map:\n\nHere\n\nError of weather:\n\nno wind\n\nResult of the function:\n\nSo?',
        images: pngAt(20),
      },
    ],
    [
      'thoughts of the model',
      following([{ type: 'thinking', thinking: 'Hm', signature: 'x' }, text('Yes.')], 'So?'),
      answered('Yes.'),
    ],
    [
      'calls of its tools and their results, as what they are',
      afterCalls(
        [text('I see.'), call('1'), { type: 'tool_use', id: '2', name: 'map' }],
        [result('2', [text('Here'), image, text('it is')]), result('1', 'windy', { is_error: true }), text('So?')],
      ),
      {
        ...answered('I see.', made('1'), made('2', 'map', '{}')),
        text: 'So?',
        results: [
          { id: '2', text: 'Hereit is', images: pngAt(4), isError: false },
          { id: '1', text: 'windy', isError: true },
        ],
      },
    ],
    [
      'results in several messages in a row, and no text',
      {
        tools: [weather],
        messages: [
          ...[user('Hi'), assistant([call('1')]), assistant([call('2')]), user([result('1')])],
          user([{ type: 'tool_result', tool_use_id: '2' }]),
        ],
      },
      {
        ...answered('', made('1'), made('2')),
        text: '',
        results: [
          { id: '1', text: 'windy', isError: false },
          { id: '2', text: '', isError: false },
        ],
      },
    ],
    ['a wish for few tokens', { max_tokens: 1 }, { sampling: { maxTokens: 1 } }],
    ['no limit of tokens', { max_tokens: -1 }, { sampling: undefined }],
    ['wishes that say nothing', { temperature: null, top_p: null, max_tokens: null }, { sampling: undefined }],
    ['a format', { output_config: { format } }, { schema: { path: 'output_config.format.schema', value: ofCity } }],
    [
      'a format by its older name',
      { output_format: format },
      { schema: { path: 'output_format.schema', value: ofCity } },
    ],
    ['no format', { output_config: { format: null }, output_format: null }, { schema: undefined }],
    ['an effort', { output_config: { effort: 'medium' } }, { effort: 'medium' }],
    ['the highest effort', { output_config: { effort: 'max' } }, { effort: 'max' }],
    ['few tokens to think with', { thinking: thinks(4095) }, { effort: 'low' }],
    ['some tokens to think with', { thinking: thinks(4096) }, { effort: 'medium' }],
    ['many tokens to think with', { thinking: thinks(16_384) }, { effort: 'high' }],
    ['thinking as it likes', { thinking: { type: 'adaptive' } }, { effort: undefined, thinking: 'summarized' }],
    ['thoughts without text', { thinking: { type: 'adaptive', display: 'omitted' } }, { thinking: 'omitted' }],
    ['an effort, and so its thoughts', { output_config: { effort: 'low' } }, { thinking: 'summarized' }],
    ['no thinking', { thinking: { type: 'disabled' } }, { effort: undefined, thinking: undefined }],
    [
      'an effort without thoughts',
      { thinking: { type: 'disabled' }, output_config: { effort: 'low' } },
      { effort: 'low', thinking: undefined },
    ],
    ['nothing of thoughts', {}, { effort: undefined, thinking: undefined }],
  ])('may have %s', (_what, fields, expected) => {
    expect(asked(fields).job).toMatchObject(expected);
  });

  it.each<[string, object, Partial<ToolOffer>]>([
    [
      'a named tool',
      choosing({ type: 'tool', name: 'weather' }, cook, weather),
      { tools: [cookTool, weatherTool], choice: { name: 'weather' }, isParallel: true },
    ],
    ['any tool', choosing({ type: 'any' }, cook, weather), { choice: 'required' }],
    ['a tool if it likes', choosing({ type: 'auto' }), { choice: 'auto' }],
    ['no tool for now', choosing({ type: 'none' }), { choice: 'none' }],
    ['tools without a choice', choosing(null), { choice: 'auto', isParallel: true }],
    ['a tool of the type custom', { tools: [{ ...weather, type: 'custom' }] }, { tools: [weatherTool] }],
    ['a tool without a schema', { tools: [{ name: 'cook' }] }, { tools: [cookTool] }],
    ['its own tool beside one of a server', { tools: [search, weather] }, { tools: [weatherTool], choice: 'auto' }],
    [
      'one call at a time',
      choosing({ type: 'any', disable_parallel_tool_use: true }),
      { choice: 'required', isParallel: false },
    ],
  ])('with a choice of %s passes it to the model', (_what, fields, offer) => {
    expect(asked(fields).job.offer).toMatchObject(offer);
    expect(asked(fields).job.schema).toBeUndefined();
  });

  it('omits provider-hosted tools, and reports each type once', () => {
    const { job, droppedTools, ignored } = asked({ tools: [search, weather, browse, { ...search, name: 'again' }] });
    expect(job.offer?.tools).toEqual([weatherTool]);
    expect(droppedTools).toEqual(['web_search_20250305', 'web_fetch_20250910']);
    expect(ignored).toEqual(['tools.web_search_20250305', 'tools.web_fetch_20250910']);
  });

  it('has no tools if it only has provider-hosted ones and chooses none', () => {
    const limited = { ...search, max_uses: 2, blocked_domains: ['b.org'], user_location: { type: 'approximate' } };
    const found = asked({ tools: [limited, browse], tool_choice: { type: 'any' } });
    expect(found.job.search).toEqual({ path: 'tools.0', maxUses: 2, blockedDomains: ['b.org'] });
    expect(found.ignored).toEqual(['tools.web_fetch_20250910', 'tool_choice', 'tools.user_location']);
    const { job, droppedTools } = asked({ tools: [search], tool_choice: { type: 'none' } });
    expect([job.offer, droppedTools]).toEqual([undefined, ['web_search_20250305']]);
  });

  it('reports a type that is invalid in a header without its name', () => {
    const odd = [{ type: 'a\r\nb' }, { type: 'ä' }, { type: 'x'.repeat(5000) }];
    expect(asked({ tools: [weather, ...odd] }).ignored).toEqual(['tools.(odd name)']);
  });

  it('names the fields of the options that the model may not support', () => {
    expect(asked({}).wishFields).toEqual({
      temperature: 'temperature',
      topP: 'top_p',
      maxTokens: 'max_tokens',
      citations: 'messages.content.citations',
      isParallel: 'tool_choice.disable_parallel_tool_use',
    });
  });

  it.each<[string, object, object, string]>([
    ['at the end', says(text('a'), marked(text('b'))), ends, 'messages.content.cache_control'],
    [
      'before a text',
      says(marked(text('a')), text('bc')),
      { ttl: '5m', restLength: 4 },
      'messages.content.cache_control',
    ],
    [
      'after an image, the last of several',
      says(marked(text('a')), text('b'), marked(image), text('cd')),
      { ttl: '5m', restLength: 2 },
      'messages.content.cache_control',
    ],
    [
      'in the system text and a tool, with the longest time to live',
      { system: [marked(text('a'), '1h')], tools: [marked(weather)] },
      { ttl: '1h', restLength: 0 },
      'tools.cache_control, system.cache_control',
    ],
    [
      'in an earlier message',
      following([text('a')], [marked(text('b'))], [text('c')]),
      ends,
      'messages.content.cache_control',
    ],
    [
      'in a message of the role system behind the question',
      { messages: [user([marked(text('a')), text('b')]), system([marked(text(reminder))])] },
      ends,
      'messages.content.cache_control',
    ],
    ['for the whole request', marked({}), ends, 'cache_control'],
  ])('has a breakpoint of the prompt cache: %s', (_, fields, cache, field) => {
    const { job, ignored, wishFields } = asked(fields);
    expect([job.cache, wishFields.cache, ignored]).toEqual([cache, field, []]);
  });

  it.each<[object, string]>([
    [{ ttl: '2h' }, 'messages.0.content.1.cache_control.ttl'],
    [[], 'messages.0.content.1.cache_control'],
  ])('with the breakpoint %j is refused', (cache_control, path) => {
    expect(() => asked(says(text('a'), { ...text('b'), cache_control }))).toThrow(
      expect.objectContaining({ details: [expect.objectContaining({ path })] }),
    );
  });

  it.each<[object, string[]]>([
    [choosing({ type: 'any' }), []],
    [choosing({ type: 'any' }, weather, search), ['tools.web_search_20250305']],
    [{ tools: [], tool_choice: { type: 'auto' } }, ['tool_choice']],
    [{ tools: [] }, []],
    [{ ...choosing({ type: 'any' }), output_config: { format } }, []],
    [
      {
        tools: [
          { ...weather, strict: false },
          { ...cook, strict: true, defer_loading: true },
        ],
      },
      ['tools.defer_loading'],
    ],
    [
      { output_config: { format, effort: 'odd', task_budget: {} }, output_format: format },
      ['output_config.task_budget', 'output_format', 'output_config.effort'],
    ],
    [{ output_config: { format }, stop_sequences: ['x'] }, ['stop_sequences']],
    [{ thinking: { type: 'disabled' } }, ['thinking']],
    [{ thinking: thinks(2000), output_config: { effort: 'low' } }, ['thinking.budget_tokens']],
    [
      { messages: [{ ...user([{ ...text('Hi'), odd: {}, citations: null, spans: [] }]), name: 'ada' }] },
      ['messages.name', 'messages.content.odd'],
    ],
    [
      { messages: [user([{ type: 'tool_result', tool_use_id: 'a', content: [{ ...text('a'), odd: {} }] }])] },
      ['messages.content.content.odd'],
    ],
    [
      choosing({ type: 'any', disable_parallel_tool_use: true, odd: 1 }, { ...weather, odd: {} }),
      ['tools.odd', 'tool_choice.odd'],
    ],
    [{ max_tokens: 5, temperature: 1, top_p: 1, top_k: 1 }, ['top_k']],
    [{ mcp_servers: [], service_tier: null, 'odd name': 1 }, ['mcp_servers', '(odd name)']],
  ])('with %j reports the ignored fields', (fields, expected) => {
    expect(asked(fields).ignored).toEqual(expected);
  });

  it('passes documents on in their places', async () => {
    const plain = { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'Hi' }, title: 'a.txt' };
    const parts = { type: 'content', content: [text('one'), image, text('two')] };
    const cited = { ...pdf, title: 'b.pdf', context: ' Of\n2026\0 ', citations: { enabled: true } };
    const { job, ignored, documentField } = asked(says(text('a'), plain, cited, { type: 'document', source: parts }));
    const data = (content: string) => Buffer.from(content).toString('base64');
    expect(job.text).toBe('a');
    const inspected = await documentInspector().inspectJob(job, 'key ada');
    expect(inspected.images).toMatchObject([
      { mediaType: 'text/plain', data: data('Hi'), name: 'a.txt', at: 1 },
      {
        mediaType: 'application/pdf',
        data: pdfData,
        name: 'b.pdf',
        context: 'Of\n2026\ufffd',
        pages: 2,
        at: 1,
        citations: true,
      },
      { mediaType: 'text/plain', data: data('one\n\ntwo'), name: '', at: 1 },
      { mediaType: 'image/png', at: 1 },
    ]);
    expect([ignored, documentField]).toEqual([[], 'messages.0.content.1']);
    const inResult = asked({ ...afterCalls([call('1')], [result('1', [{ ...pdf, context: 'x' }])]) });
    expect(inResult.job.results).toMatchObject([{ id: '1', text: '', images: [{ data: pdfData, context: 'x' }] }]);
    expect(inResult.ignored).toEqual([]);
    expect(asked({ messages: [user([pdf]), assistant([pdf]), user('Hi')] }).ignored).toEqual([
      'messages.content.document',
    ]);
  });

  it('omits a blank context of a document, and refuses one that is too long', () => {
    expect(asked(says({ ...pdf, context: ' \n' })).job.images?.[0]).not.toHaveProperty('context');
    expect(asked(says({ ...pdf, context: null })).job.images?.[0]).not.toHaveProperty('context');
    expect(asked(says({ ...pdf, context: 'x'.repeat(10_000) })).job.images).toHaveLength(1);
    const field = 'messages.0.content.0.context';
    expect(() => asked(says({ ...pdf, context: 'x'.repeat(10_001) }))).toThrow(`${field}: must be at most 10000`);
    expect(() => asked(says({ ...pdf, context: 7 }))).toThrow(`${field}: must be a string`);
  });

  it('requests citations only of documents in messages, and not of a value', () => {
    const on = { ...pdf, citations: { enabled: true } };
    const off = { ...pdf, citations: { enabled: false } };
    expect(asked(says(off)).job.images?.[0]).not.toHaveProperty('citations');
    const { job, ignored } = asked({ ...afterCalls([call('1')], [result('1', [on])]) });
    expect(job.results?.[0]?.images?.[0]).not.toHaveProperty('citations');
    expect(ignored).toEqual(['messages.content.content.citations']);
    expect(() => asked({ ...says(on), output_config: { format: { type: 'json_schema', schema: {} } } })).toThrow(
      'output_config.format.schema: cannot be used together with citations of documents',
    );
    expect(() => asked(says({ ...pdf, citations: true }))).toThrow('messages.0.content.0.citations: must be an object');
  });

  it('joins the blocks of an earlier answer with citations as they were written', () => {
    const cited = { ...text('the grass is green'), citations: [{ type: 'char_location' }] };
    const answer = assistant([text('I read that '), cited, text('.')]);
    expect(asked({ messages: [user('Hi'), answer, user('And?')] }).job.history).toMatchObject([
      { text: 'Hi' },
      { text: 'I read that the grass is green.' },
    ]);
  });

  it('records the field of its first image', () => {
    expect(asked(following('Hi', [text('a'), image])).imageField).toBe('messages.2.content.1');
    expect(asked(says(text('a'), result('1', [image]))).imageField).toBe('messages.0.content.1.content.0');
    expect(asked({}).imageField).toBeNull();
  });

  it('records the field of the effort', () => {
    expect(asked({ output_config: { effort: 'low' } }).effortField).toBe('output_config.effort');
    expect(asked({ thinking: thinks(1) }).effortField).toBe('thinking');
    expect(asked({}).effortField).toBeNull();
  });

  it.each<[string, object]>([
    ['messages', { messages: [] }],
    ['messages', { messages: [user('')] }],
    ['messages', { messages: [user(' ')] }],
    ['messages', following('I')],
    ['messages.0.role', { messages: [{ role: 'tool', content: 'x' }] }],
    ['messages.0.content.0.text', says({ type: 'text' })],
    ['messages.0.content.0.source.type', says({ type: 'document', source: {} })],
    ['messages.0.content.0.source', says({ type: 'document' })],
    ['messages.0.content.0.source.file_id', says({ type: 'document', source: { type: 'file', file_id: 'x' } })],
    ['messages.0.content.0.source.url', says({ type: 'document', source: { type: 'url', url: 'http://x' } })],
    [
      'messages.0.content.0.source.content.0.type',
      says({ type: 'document', source: { type: 'content', content: [{ type: 'x' }] } }),
    ],
    ['messages.0.content.0.content', says({ type: 'tool_result', content: 5 })],
    ['messages.1.content.0.type', following([{ type: 'tool_result' }], '?')],
    ['messages.0.content.0.source', sends(undefined)],
    ['messages.0.content.0.source.type', sends({ type: 'url', url: 'http://x' })],
    ['messages.0.content.0.source.file_id', sends({ type: 'file', file_id: 'x' })],
    ['messages.0.content.0.source', sends({ ...image.source, media_type: 'image/bmp' })],
    ['messages.0.content.0.source', sends({ ...image.source, data: 'aGVsbG8=' })],
    ['messages.0.content.0.type', says({ type: 'tool_use', id: 'a', name: 'b' })],
    ['messages.0.content.0.type', says({ type: 'tool_reference', tool_name: 'weather' })],
    ['system.0.type', { system: [image] }],
    ['messages.0.content.0.type', { messages: [system([image]), user('Hi')] }],
    ['tools', { tools: [browse] }],
    ['tools', choosing({ type: 'any' }, browse)],
    ['tools', choosing({ type: 'tool', name: 'web_fetch' }, browse)],
    ['tools.0.max_uses', { tools: [{ ...search, max_uses: 0 }] }],
    ['tools.0.allowed_domains.1', { tools: [{ ...search, allowed_domains: ['a.org', ''] }] }],
    ['tools.0', { tools: [{ ...search, allowed_domains: ['a.org'], blocked_domains: ['b.org'] }] }],
    ['tools.0', { tools: [search], output_config: { format: { type: 'json_schema', schema: { type: 'object' } } } }],
    ['tools', { tools: Array.from({ length: 129 }, (_, index) => ({ ...cook, name: `cook${index}` })) }],
    ['tools', { tools: [{ ...cook, description: 'x'.repeat(256 * 1024) }] }],
    ['tools.1.name', { tools: [cook, { ...cook }] }],
    ['tools.0.name', { tools: [{ ...cook, name: 'a b' }] }],
    ['tools.0.name', { tools: [{ ...cook, name: 'x'.repeat(129) }] }],
    ['tools.0', { tools: [{ name: 'cook', input_schema: { type: 'string' } }] }],
    ['tool_choice', { tool_choice: { type: 'any' } }],
    ['tool_choice', choosing({ type: 'tool', name: 'web_search' }, search, weather)],
    ['tool_choice', choosing({ type: 'tool', name: 'cook' })],
    ['tool_choice.name', choosing({ type: 'tool' })],
    ['tool_choice.type', choosing({ type: 'odd' })],
    ['tools.1.name', { tools: [search, { input_schema: {} }] }],
    ['messages', afterCalls([call('1')], 'So?')],
    ['messages', { tools: [weather], ...says(result('1')) }],
    ['messages', afterCalls('I', [result('1')])],
    ['messages', afterCalls([call('1')], [result('1'), result('1')])],
    ['messages', afterCalls([call('1'), call('1')], [result('1')])],
    ['messages.1.content.0.id', afterCalls([{ type: 'tool_use', id: 5, name: 'weather' }], '?')],
    ['messages.1.content.0.name', afterCalls([{ type: 'tool_use', id: '1' }], '?')],
    ['messages.0.content.0.tool_use_id', { tools: [weather], ...says({ type: 'tool_result', tool_use_id: 5 }) }],
    ['output_config.format.type', { output_config: { format: { type: 'json_object' } } }],
    ['output_config.format.schema', { output_config: { format: { type: 'json_schema' } } }],
    ['output_format.type', { output_format: { type: 'text' } }],
  ])('is rejected for %s', (field, fields) => {
    expect(faultOf(fields)).toBe(field);
  });

  it.each<[string, object]>([
    ['model', { model: 5 }],
    ['model', { model: '-x' }],
    ['messages', { messages: 'Hi' }],
    ['messages.0.role', { messages: [{ content: 'Hi' }] }],
    ['messages.0.content', { messages: [user(null)] }],
    ['messages.0.content', { messages: [user([{ text: 'Hi' }])] }],
    ['system', { system: 5 }],
    ['stream', { stream: 'yes' }],
    ['stop_sequences', { stop_sequences: 'END' }],
    ['stop_sequences.0', { stop_sequences: ['x'.repeat(501)] }],
    ['stop_sequences', { stop_sequences: Array.from({ length: 17 }, () => 'x') }],
    ['tools', { tools: {} }],
    ['max_tokens', { max_tokens: -2 }],
    ['max_tokens', { max_tokens: 1.5 }],
    ['temperature', { temperature: 2.1 }],
    ['top_p', { top_p: -0.1 }],
    ['tool_choice.disable_parallel_tool_use', { tool_choice: { type: 'any', disable_parallel_tool_use: 'yes' } }],
    ['tools.0.input_schema', { tools: [{ name: 'x', input_schema: [] }] }],
    ['tool_choice', { tool_choice: 'any' }],
    ['output_config.format.type', { output_config: { format: {} } }],
    ['thinking.type', { thinking: {} }],
    ['metadata.user_id', { metadata: { user_id: 5 } }],
  ])('with a wrong type in %s is rejected', (field, fields) => {
    const result = messagesRequest.safeParse({ model: 'eliza', messages: [user('Hi')], ...fields });
    expect(result.error?.issues[0]?.path.join('.')).toBe(field);
  });
});

function faultOf(fields: object): string | undefined {
  try {
    asked(fields);
    return undefined;
  } catch (error) {
    return error instanceof RelayError ? error.details?.[0]?.path : String(error);
  }
}

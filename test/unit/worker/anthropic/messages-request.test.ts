import { RelayError } from '../../../../src/shared/errors.js';
import type { ToolOffer } from '../../../../src/shared/job.js';
import {
  type MessagesRequest,
  messagesRequest,
  parseMessages,
} from '../../../../src/worker/anthropic/messages-request.js';
import type { ParsedRequest } from '../../../../src/worker/jobs/job-request.js';

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';
const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } };
const text = (said: string) => ({ type: 'text', text: said });
const user = (content: unknown) => ({ role: 'user', content });
const assistant = (content: unknown) => ({ role: 'assistant', content });
const ofCity = { type: 'object', properties: { city: { type: 'string' } } };
const weather = { name: 'weather', description: 'Tells it', input_schema: ofCity };
const cook = { name: 'cook', input_schema: { type: 'object' } };
const search = { type: 'web_search_20250305', name: 'web_search' };
const format = { type: 'json_schema', schema: ofCity };
const weatherTool = { name: 'weather', description: 'Tells it', schema: JSON.stringify(ofCity) };
const cookTool = { name: 'cook', description: '', schema: '{"type":"object"}' };
const asksWeather = { type: 'tool_use', id: '1', name: 'weather', input: { city: 'Bonn' } };
const answersWeather = { type: 'tool_result', tool_use_id: '1', content: 'windy' };

function asked(fields: object): ParsedRequest {
  const body = { model: 'eliza', messages: [user('Hi')], ...fields };
  return parseMessages(messagesRequest.parse(body) as MessagesRequest);
}

describe('A request to the Messages API', () => {
  it('becomes a job with all of its values', () => {
    const { job, model, ignored } = asked({
      system: [text('Be kind.'), { ...text('Be brief.'), cache_control: { type: 'ephemeral' } }],
      messages: [user('Hi'), assistant([text('Hello.')]), user([image, text('Who is it?')])],
      stop_sequences: ['END', ''],
      stream: true,
      max_tokens: 100,
      temperature: 0.5,
      top_p: 0.9,
      top_k: 5,
      metadata: { user_id: 'ada' },
    });
    expect(job).toEqual({
      operation: 'ask',
      isEffortNeeded: false,
      text: 'Who is it?',
      images: [{ mediaType: 'image/png', data: png, at: 0 }],
      history: [
        { role: 'user', text: 'Hi' },
        { role: 'assistant', text: 'Hello.' },
      ],
      system: 'Be kind.\n\nBe brief.',
      model: 'eliza',
      schema: undefined,
      effort: undefined,
      offer: undefined,
      sampling: { temperature: 0.5, topP: 0.9, maxTokens: 100 },
      stop: ['END'],
      stream: true,
    });
    expect(model).toBe('eliza');
    expect(ignored).toEqual(['metadata', 'top_k', 'system.cache_control']);
  });

  it.each<[string, object, Partial<ParsedRequest['job']>]>([
    ['a system text', { system: 'Be kind.' }, { system: 'Be kind.' }],
    ['no system text', { system: null }, { system: undefined }],
    [
      'a message of the role system',
      { system: 'Be kind.', messages: [user('Hi'), { role: 'system', content: [text('Be brief.')] }, user('Well?')] },
      { system: 'Be kind.\n\nBe brief.', text: 'Hi\n\nWell?', history: [] },
    ],
    [
      'a message of the role system behind results, as Claude Code sends one with each round',
      {
        tools: [weather],
        messages: [
          user('Hi'),
          { role: 'system', content: 'You are at home.' },
          assistant([asksWeather]),
          user([{ type: 'tool_result', tool_use_id: asksWeather.id, content: 'rain' }]),
          { role: 'system', content: [text('<system-reminder>\n99 left\n</system-reminder>')] },
        ],
      },
      {
        system: 'You are at home.',
        text: '',
        results: [
          { id: asksWeather.id, text: 'rain\n\n<system-reminder>\n99 left\n</system-reminder>', isError: false },
        ],
      },
    ],
    [
      'tools that the client has found for the model',
      {
        tools: [weather],
        messages: [
          user('Hi'),
          assistant([asksWeather]),
          user([
            {
              type: 'tool_result',
              tool_use_id: asksWeather.id,
              content: [
                { type: 'tool_reference', tool_name: 'WebFetch' },
                { type: 'tool_reference', tool_name: 'Monitor' },
              ],
            },
          ]),
        ],
      },
      {
        results: [
          {
            id: asksWeather.id,
            text: 'The tool WebFetch can be called now.\n\nThe tool Monitor can be called now.',
            isError: false,
          },
        ],
      },
    ],
    [
      'two messages of a role in a row',
      { messages: [user('One'), user([text('Two'), image]), assistant(''), user('Three')] },
      { text: 'One\n\nTwo\n\nThree', images: [{ mediaType: 'image/png', data: png, at: 8 }], history: [] },
    ],
    [
      'a call of a tool that is offered no more, which is told as text',
      {
        messages: [
          user('Hi'),
          assistant([text('I see.'), { type: 'tool_use', id: '1', name: 'weather', input: { city: 'Bonn' } }]),
          user('So?'),
        ],
      },
      {
        history: [
          { role: 'user', text: 'Hi' },
          { role: 'assistant', text: 'I see.\n\n{"city":"Bonn"}' },
        ],
      },
    ],
    [
      'the results of such calls, which are told as text',
      {
        messages: [
          user('Hi'),
          assistant([
            { type: 'tool_use', id: '1', name: 'weather', input: {} },
            { type: 'tool_use', id: '2', name: 'map', input: {} },
          ]),
          user([
            { type: 'tool_result', tool_use_id: '2', content: [text('Here'), image] },
            { type: 'tool_result', tool_use_id: '1', content: 'no wind', is_error: true },
            { type: 'tool_result', tool_use_id: '3' },
            text('So?'),
          ]),
        ],
      },
      {
        history: [
          { role: 'user', text: 'Hi' },
          { role: 'assistant', text: '{}\n\n{}' },
        ],
        text: 'Result of map:\n\nHere\n\nError of weather:\n\nno wind\n\nResult of the function:\n\nSo?',
        images: [{ mediaType: 'image/png', data: png, at: 20 }],
      },
    ],
    [
      'thoughts of the model',
      {
        messages: [
          user('Hi'),
          assistant([{ type: 'thinking', thinking: 'Hm', signature: 'x' }, text('Yes.')]),
          user('So?'),
        ],
      },
      {
        history: [
          { role: 'user', text: 'Hi' },
          { role: 'assistant', text: 'Yes.' },
        ],
      },
    ],
    [
      'calls of its tools and their results, as what they are',
      {
        tools: [weather],
        messages: [
          user('Hi'),
          assistant([text('I see.'), asksWeather, { type: 'tool_use', id: '2', name: 'map' }]),
          user([
            { type: 'tool_result', tool_use_id: '2', content: [text('Here'), image, text('it is')] },
            { ...answersWeather, is_error: true },
            text('So?'),
          ]),
        ],
      },
      {
        history: [
          { role: 'user', text: 'Hi' },
          {
            role: 'assistant',
            text: 'I see.',
            calls: [
              { id: '1', name: 'weather', input: '{"city":"Bonn"}' },
              { id: '2', name: 'map', input: '{}' },
            ],
          },
        ],
        text: 'So?',
        results: [
          { id: '2', text: 'Hereit is', images: [{ mediaType: 'image/png', data: png, at: 4 }], isError: false },
          { id: '1', text: 'windy', isError: true },
        ],
      },
    ],
    [
      'results in several messages in a row, and no text',
      {
        tools: [weather],
        messages: [
          user('Hi'),
          assistant([asksWeather]),
          assistant([{ ...asksWeather, id: '2' }]),
          user([answersWeather]),
          user([{ type: 'tool_result', tool_use_id: '2' }]),
        ],
      },
      {
        history: [
          { role: 'user', text: 'Hi' },
          {
            role: 'assistant',
            text: '',
            calls: [
              { id: '1', name: 'weather', input: '{"city":"Bonn"}' },
              { id: '2', name: 'weather', input: '{"city":"Bonn"}' },
            ],
          },
        ],
        text: '',
        results: [
          { id: '1', text: 'windy', isError: false },
          { id: '2', text: '', isError: false },
        ],
      },
    ],
    ['a wish for few tokens', { max_tokens: 1 }, { sampling: { maxTokens: 1 } }],
    ['wishes that say nothing', { temperature: null, top_p: null, max_tokens: null }, { sampling: undefined }],
    ['a format', { output_config: { format } }, { schema: { path: 'output_config.format.schema', value: ofCity } }],
    [
      'a format by its older name',
      { output_format: format },
      { schema: { path: 'output_format.schema', value: ofCity } },
    ],
    ['no format', { output_config: { format: null }, output_format: null }, { schema: undefined }],
    ['an effort', { output_config: { effort: 'medium' } }, { effort: 'medium' }],
    ['more effort than there is', { output_config: { effort: 'max' } }, { effort: 'high' }],
    ['few tokens to think with', { thinking: { type: 'enabled', budget_tokens: 4095 } }, { effort: 'low' }],
    ['some tokens to think with', { thinking: { type: 'enabled', budget_tokens: 4096 } }, { effort: 'medium' }],
    ['many tokens to think with', { thinking: { type: 'enabled', budget_tokens: 16_384 } }, { effort: 'high' }],
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
      { tools: [cook, weather], tool_choice: { type: 'tool', name: 'weather' } },
      { tools: [cookTool, weatherTool], choice: { name: 'weather' }, isParallel: true },
    ],
    ['any tool', { tools: [cook, weather], tool_choice: { type: 'any' } }, { choice: 'required' }],
    ['a tool if it likes', { tools: [weather], tool_choice: { type: 'auto' } }, { choice: 'auto' }],
    ['no tool for now', { tools: [weather], tool_choice: { type: 'none' } }, { choice: 'none' }],
    ['tools without a choice', { tools: [weather], tool_choice: null }, { choice: 'auto', isParallel: true }],
    ['a tool of the type custom', { tools: [{ ...weather, type: 'custom' }] }, { tools: [weatherTool] }],
    ['a tool without a schema', { tools: [{ name: 'cook' }] }, { tools: [cookTool] }],
    ['its own tool beside one of a server', { tools: [search, weather] }, { tools: [weatherTool], choice: 'auto' }],
    [
      'one call at a time',
      { tools: [weather], tool_choice: { type: 'any', disable_parallel_tool_use: true } },
      { choice: 'required', isParallel: false },
    ],
  ])('with a choice of %s passes it to the model', (_what, fields, offer) => {
    expect(asked(fields).job.offer).toMatchObject(offer);
    expect(asked(fields).job.schema).toBeUndefined();
  });

  it('omits provider-hosted tools, and reports each type once', () => {
    const browse = { type: 'web_fetch_20250910', name: 'web_fetch' };
    const { job, droppedTools, ignored } = asked({ tools: [search, weather, browse, { ...search, name: 'again' }] });
    expect(job.offer?.tools).toEqual([weatherTool]);
    expect(droppedTools).toEqual(['web_search_20250305', 'web_fetch_20250910']);
    expect(ignored).toEqual(['tools.web_search_20250305', 'tools.web_fetch_20250910']);
  });

  it('has no tools if it only has provider-hosted ones and chooses none', () => {
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
      isParallel: 'tool_choice.disable_parallel_tool_use',
    });
  });

  it.each<[object, string[]]>([
    [{ tools: [weather], tool_choice: { type: 'any' } }, []],
    [{ tools: [weather, search], tool_choice: { type: 'any' } }, ['tools.web_search_20250305']],
    [{ tools: [], tool_choice: { type: 'auto' } }, ['tool_choice']],
    [{ tools: [] }, []],
    [{ tools: [weather], tool_choice: { type: 'any' }, output_config: { format } }, []],
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
    [
      { thinking: { type: 'enabled', budget_tokens: 2000 }, output_config: { effort: 'low' } },
      ['thinking.budget_tokens'],
    ],
    [
      { messages: [{ ...user([{ ...text('Hi'), cache_control: {}, citations: null, spans: [] }]), name: 'ada' }] },
      ['messages.name', 'messages.content.cache_control'],
    ],
    [
      {
        tools: [{ ...weather, cache_control: {} }],
        tool_choice: { type: 'any', disable_parallel_tool_use: true, odd: 1 },
      },
      ['tools.cache_control', 'tool_choice.odd'],
    ],
    [{ max_tokens: 5, temperature: 1, top_p: 1, top_k: 1 }, ['top_k']],
    [{ mcp_servers: [], service_tier: null, 'odd name': 1 }, ['mcp_servers', '(odd name)']],
  ])('with %j reports the ignored fields', (fields, expected) => {
    expect(asked(fields).ignored).toEqual(expected);
  });

  it('records the field of its first image', () => {
    const result = { type: 'tool_result', tool_use_id: '1', content: [image] };
    expect(asked({ messages: [user('Hi'), assistant('Hi'), user([text('a'), image])] }).imageField).toBe(
      'messages.2.content.1',
    );
    expect(asked({ messages: [user([text('a'), result])] }).imageField).toBe('messages.0.content.1.content.0');
    expect(asked({}).imageField).toBeNull();
  });

  it('records the field of the effort', () => {
    expect(asked({ output_config: { effort: 'low' } }).effortField).toBe('output_config.effort');
    expect(asked({ thinking: { type: 'enabled', budget_tokens: 1 } }).effortField).toBe('thinking');
    expect(asked({}).effortField).toBeNull();
  });

  it.each<[string, object]>([
    ['messages', { messages: [] }],
    ['messages', { messages: [user('')] }],
    ['messages', { messages: [user(' ')] }],
    ['messages', { messages: [user('Hi'), assistant('I')] }],
    ['messages.0.role', { messages: [{ role: 'tool', content: 'x' }] }],
    ['messages.0.content.0.text', { messages: [user([{ type: 'text' }])] }],
    ['messages.0.content.0.type', { messages: [user([{ type: 'document', source: {} }])] }],
    ['messages.0.content.0.content', { messages: [user([{ type: 'tool_result', content: 5 }])] }],
    ['messages.1.content.0.type', { messages: [user('Hi'), assistant([{ type: 'tool_result' }]), user('?')] }],
    ['messages.0.content.0.source', { messages: [user([{ type: 'image' }])] }],
    [
      'messages.0.content.0.source.type',
      { messages: [user([{ type: 'image', source: { type: 'url', url: 'http://x' } }])] },
    ],
    [
      'messages.0.content.0.source.type',
      { messages: [user([{ type: 'image', source: { type: 'file', file_id: 'x' } }])] },
    ],
    [
      'messages.0.content.0.source',
      { messages: [user([{ ...image, source: { ...image.source, media_type: 'image/bmp' } }])] },
    ],
    [
      'messages.0.content.0.source',
      { messages: [user([{ ...image, source: { ...image.source, data: 'aGVsbG8=' } }])] },
    ],
    ['messages.0.content.0.type', { messages: [user([{ type: 'tool_use', id: 'a', name: 'b' }])] }],
    ['messages.0.content.0.type', { messages: [user([{ type: 'tool_reference', tool_name: 'weather' }])] }],
    ['system.0.type', { system: [image] }],
    ['messages.0.content.0.type', { messages: [{ role: 'system', content: [image] }, user('Hi')] }],
    ['tools', { tools: [search] }],
    ['tools', { tools: [search], tool_choice: { type: 'any' } }],
    ['tools', { tools: [search], tool_choice: { type: 'tool', name: 'web_search' } }],
    ['tools', { tools: Array.from({ length: 129 }, (_, index) => ({ ...cook, name: `cook${index}` })) }],
    ['tools', { tools: [{ ...cook, description: 'x'.repeat(256 * 1024) }] }],
    ['tools.1.name', { tools: [cook, { ...cook }] }],
    ['tools.0.name', { tools: [{ ...cook, name: 'a b' }] }],
    ['tools.0.name', { tools: [{ ...cook, name: 'x'.repeat(129) }] }],
    ['tools.0', { tools: [{ name: 'cook', input_schema: { type: 'string' } }] }],
    ['tool_choice', { tool_choice: { type: 'any' } }],
    ['tool_choice', { tools: [search, weather], tool_choice: { type: 'tool', name: 'web_search' } }],
    ['tool_choice', { tools: [weather], tool_choice: { type: 'tool', name: 'cook' } }],
    ['tool_choice.name', { tools: [weather], tool_choice: { type: 'tool' } }],
    ['tool_choice.type', { tools: [weather], tool_choice: { type: 'odd' } }],
    ['tools.1.name', { tools: [search, { input_schema: {} }] }],
    ['messages', { tools: [weather], messages: [user('Hi'), assistant([asksWeather]), user('So?')] }],
    ['messages', { tools: [weather], messages: [user([answersWeather])] }],
    ['messages', { tools: [weather], messages: [user('Hi'), assistant('I'), user([answersWeather])] }],
    [
      'messages',
      { tools: [weather], messages: [user('Hi'), assistant([asksWeather]), user([answersWeather, answersWeather])] },
    ],
    [
      'messages',
      { tools: [weather], messages: [user('Hi'), assistant([asksWeather, asksWeather]), user([answersWeather])] },
    ],
    [
      'messages.1.content.0.id',
      { tools: [weather], messages: [user('Hi'), assistant([{ type: 'tool_use', name: 'weather' }]), user('?')] },
    ],
    [
      'messages.1.content.0.name',
      { tools: [weather], messages: [user('Hi'), assistant([{ type: 'tool_use', id: '1' }]), user('?')] },
    ],
    ['messages.0.content.0.tool_use_id', { tools: [weather], messages: [user([{ type: 'tool_result' }])] }],
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
    ['max_tokens', { max_tokens: -1 }],
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

import { chatCompletionRequest, parseChat } from '../../../../src/worker/openai/chat-request.js';
import { always, answerEvents, begun, openAiDoor } from '../../../support/doors/openai-door.js';
import { jobDone } from '../../../support/jobs/job-records.js';

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${png}`, detail: 'low' } };
const hi = [{ role: 'user', content: 'Hi' }];
const parameters = { type: 'object', properties: { city: { type: 'string' } } };
const weather = { type: 'function', function: { name: 'weather', description: 'of a city', parameters } };
const time = { type: 'function', function: { name: 'time' } };
const weatherTool = { name: 'weather', description: 'of a city', schema: JSON.stringify(parameters) };
const timeTool = { name: 'time', description: '', schema: '{"type":"object"}' };
const search = { type: 'web_search' };
const schema = { type: 'object', properties: { a: { type: 'string' } } };
const format = { type: 'json_schema', json_schema: { name: 'a', strict: true, schema } };

function asked(body: object) {
  return parseChat(chatCompletionRequest.parse({ model: 'eliza', messages: hi, ...body }));
}

describe('A chat completion asks for', () => {
  it('one answer to the last message, with the history in its roles', () => {
    const messages = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'a' },
      { role: 'developer', content: [{ type: 'text', text: 'Be kind.' }] },
      { role: 'assistant', content: 'b', refusal: null, tool_calls: null },
      {
        role: 'user',
        content: [{ type: 'text', text: 'what is' }, image, { type: 'text', text: 'this' }],
        name: 'ada',
      },
    ];
    expect(asked({ messages })).toEqual({
      job: {
        operation: 'ask',
        isEffortNeeded: false,
        text: 'what isthis',
        images: [{ mediaType: 'image/png', data: png, at: 7 }],
        history: [
          { role: 'user', text: 'a' },
          { role: 'assistant', text: 'b' },
        ],
        system: 'Be brief.\n\nBe kind.',
        model: 'eliza',
        results: undefined,
        offer: undefined,
        schema: undefined,
        effort: undefined,
        stop: [],
        sampling: undefined,
        stream: false,
      },
      model: 'eliza',
      forms: {},
      droppedTools: [],
      wishFields: {
        temperature: 'temperature',
        topP: 'top_p',
        maxTokens: 'max_tokens',
        isParallel: 'parallel_tool_calls',
      },
      ignored: ['messages.name', 'messages.content.image_url.detail'],
      effortField: 'reasoning_effort',
      imageField: 'messages.4.content.1',
      schemaWish: null,
      wantsUsage: false,
      isLegacyCall: false,
    });
  });

  it('an answer after the results of calls, which are text if there are no tools', () => {
    const call = (id: string, name: string) => ({ id, type: 'function', function: { name, arguments: '{}' } });
    const parts = [{ type: 'text', text: '12 o’clock' }, image];
    const messages = [
      ...hi,
      { role: 'assistant', content: null, tool_calls: [call('a', 'weather'), call('b', 'time')] },
      { role: 'tool', tool_call_id: 'b', content: parts },
      { role: 'tool', tool_call_id: 'a', content: 'Rain' },
      { role: 'tool', tool_call_id: 'unknown', content: null },
      { role: 'assistant', content: null, function_call: { name: 'weather', arguments: '{"city":"Ulm"}' } },
      { role: 'function', name: 'weather', content: 'Sun' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c', type: 'custom', custom: { name: 'run', input: 'ls' } }],
      },
      { role: 'tool', tool_call_id: 'c', content: 'a.txt' },
    ];
    const { job, ignored } = asked({ messages });
    expect(job.history).toEqual([
      { role: 'user', text: 'Hi' },
      { role: 'assistant', text: '{}\n\n{}' },
      {
        role: 'user',
        text: 'Result of time:\n\n12 o’clock\n\nResult of weather:\n\nRain\n\nResult of the function:',
        images: [{ mediaType: 'image/png', data: png, at: 27 }],
      },
      { role: 'assistant', text: '{"city":"Ulm"}' },
      { role: 'user', text: 'Result of weather:\n\nSun' },
      { role: 'assistant', text: 'ls' },
    ]);
    expect([job.text, ignored]).toEqual(['Result of run:\n\na.txt', ['messages.content.image_url.detail']]);
  });

  it('an answer after a result, whatever the name of its function', () => {
    const named = (name: unknown) => asked({ messages: [{ role: 'function', name, content: 'x' }] }).job.text;
    expect([named('weather.of-city'), named('a\0b'), named(5), named('x'.repeat(200))]).toEqual([
      'Result of weather.of-city:\n\nx',
      ...Array.from({ length: 3 }, () => 'Result of the function:\n\nx'),
    ]);
  });

  it.each([
    [
      'an answer that was a call',
      { role: 'assistant', content: null, tool_calls: [{ id: 'x', function: { arguments: '{}' } }] },
      '{}',
    ],
    ['an answer that was refused', { role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] }, 'No.'],
    [
      'an answer in parts',
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'b' },
          { type: 'text', text: 'c' },
        ],
      },
      'b\n\nc',
    ],
  ])('an answer after %s', (_, message, text) => {
    const { job } = asked({ messages: [...hi, message, ...hi] });
    expect(job.history?.at(-1)).toEqual({ role: 'assistant', text });
  });

  it('an answer after an empty one', () => {
    const { job } = asked({
      messages: [...hi, { role: 'assistant', content: null }, { role: 'user', content: 'b' }],
    });
    expect(job).toMatchObject({ text: 'Hi\n\nb', history: [] });
  });

  it.each([
    [{}, { schema: undefined, offer: undefined, ignored: [] }],
    [
      { stream: true, stream_options: { include_usage: true } },
      { stream: true, wantsUsage: true, ignored: [] },
    ],
    [{ stop: 'X' }, { stop: ['X'], ignored: [] }],
    [{ stop: ['X', '', 'Y'] }, { stop: ['X', 'Y'] }],
    [
      { stop: null, n: 1, logprobs: false, top_logprobs: 0, modalities: ['text'], tools: [], user: null },
      { stop: [], ignored: ['top_logprobs'] },
    ],
    [
      { temperature: 1, seed: 2, store: true, metadata: {}, max_tokens: 5, max_completion_tokens: null },
      { sampling: { temperature: 1, maxTokens: 5 }, ignored: ['seed', 'store', 'metadata'] },
    ],
    [
      { top_p: 0.5, max_tokens: 5, max_completion_tokens: 6 },
      { sampling: { topP: 0.5, maxTokens: 6 }, wishFields: { maxTokens: 'max_completion_tokens' }, ignored: [] },
    ],
    [{ 'odd name\n': 1, user: 'joe' }, { ignored: ['user', '(odd name)'] }],
    [{ reasoning_effort: 'xhigh' }, { effort: 'high', ignored: [] }],
    [{ reasoning_effort: 'minimal' }, { effort: 'low' }],
    [{ reasoning_effort: 'none' }, { effort: undefined, ignored: ['reasoning_effort'] }],
    [{ reasoning_effort: 'toString' }, { effort: undefined, ignored: ['reasoning_effort'] }],
    [{ response_format: { type: 'text' } }, { schema: undefined, ignored: [] }],
    [{ response_format: { type: 'json_object' } }, { schema: { path: 'response_format', value: { type: 'object' } } }],
    [{ response_format: format }, { schema: { path: 'response_format.json_schema.schema', value: schema } }],
    [
      { response_format: { type: 'json_object', schema } },
      { schema: { path: 'response_format.schema', value: schema }, schemaWish: null, ignored: [] },
    ],
    [
      { response_format: { type: 'json_schema', schema } },
      { schema: { path: 'response_format.schema', value: schema } },
    ],
    [
      { response_format: { type: 'json_object' } },
      { schemaWish: expect.stringMatching(/json_schema.*supportsStruct/) },
    ],
    [
      { response_format: { type: 'text', schema }, stream_options: { include_obfuscation: true } },
      { schema: undefined, ignored: ['response_format.schema', 'stream_options.include_obfuscation'] },
    ],
    [
      { response_format: { ...format, schema, json_schema: { ...format.json_schema, description: 'x' } } },
      { ignored: ['response_format.schema', 'response_format.json_schema.description'] },
    ],
    [{ guided_json: schema }, { schema: { path: 'guided_json', value: schema }, schemaWish: null, ignored: [] }],
    [{ guided_json: JSON.stringify(schema) }, { schema: { path: 'guided_json', value: schema } }],
    [
      { guided_json: schema, response_format: { type: 'text' } },
      { schema: { path: 'guided_json', value: schema }, ignored: [] },
    ],
    [
      { guided_json: { type: 'object' }, response_format: format, guided_regex: 'x' },
      { schema: { value: schema }, ignored: ['guided_regex', 'guided_json'] },
    ],
    [
      { response_format: format, stop: 'X' },
      { stop: [], ignored: ['stop'] },
    ],
    [
      { tools: [weather, time] },
      { offer: { tools: [weatherTool, timeTool], choice: 'auto', isParallel: true }, ignored: [] },
    ],
    [
      { tools: [weather], tool_choice: 'none', parallel_tool_calls: false },
      { offer: { tools: [weatherTool], choice: 'none', isParallel: false }, ignored: [] },
    ],
    [
      { tools: [weather], tool_choice: 'required' },
      { offer: { choice: 'required' }, ignored: [] },
    ],
    [
      {
        tools: [time, weather],
        tool_choice: { type: 'function', function: { name: 'weather' } },
        stop: ['X'],
        response_format: format,
      },
      { offer: { choice: { name: 'weather' } }, schema: { value: schema }, stop: [], ignored: ['stop'] },
    ],
    [
      { functions: [time.function, weather.function], function_call: { name: 'weather' }, guided_json: schema },
      {
        offer: { tools: [timeTool, weatherTool], choice: { name: 'weather' }, isParallel: false },
        isLegacyCall: true,
        schema: { path: 'guided_json' },
        ignored: [],
      },
    ],
    [{ functions: [weather.function] }, { offer: { choice: 'auto' }, isLegacyCall: true, ignored: [] }],
    [
      { tools: [weather], tool_choice: 'required', functions: [time.function], function_call: { name: 'time' } },
      { offer: { tools: [weatherTool] }, isLegacyCall: false, ignored: [] },
    ],
    [
      { tools: [{ ...weather, cache_control: { type: 'ephemeral' } }, search] },
      {
        offer: { tools: [weatherTool] },
        droppedTools: ['web_search'],
        ignored: ['tools.web_search', 'tools.cache_control'],
      },
    ],
    [
      { tools: [{ ...weather, function: { ...weather.function, strict: true } }] },
      { offer: { tools: [{ ...weatherTool, isStrict: true }] }, ignored: [] },
    ],
    [{ tools: [{ ...weather, function: { ...weather.function, strict: false } }] }, { ignored: [] }],
    [
      {
        tools: [{ type: 'custom', custom: { name: 'run' } }],
        tool_choice: { type: 'custom', custom: { name: 'run' } },
      },
      { offer: { choice: { name: 'run' } }, forms: { run: { isCustom: true, name: 'run' } } },
    ],
    [
      { functions: [], function_call: 'none', tools: [] },
      { offer: undefined, ignored: [] },
    ],
    [
      { tools: [], parallel_tool_calls: true },
      { offer: undefined, ignored: ['parallel_tool_calls'] },
    ],
  ])('the options of %j', (body, expected) => {
    const { job, ...rest } = asked(body);
    expect({ ...job, ...rest }).toMatchObject(expected);
  });
});

describe('With tools, a chat completion', () => {
  const made = (id: string, name: string) => ({ id, type: 'function', function: { name, arguments: '{"a":1}' } });

  it('has calls and results with their ids, and images in results', () => {
    const messages = [
      ...hi,
      { role: 'assistant', content: 'I look.', tool_calls: [made('a', 'weather'), made('b', 'time')] },
      { role: 'tool', tool_call_id: 'b', content: [{ type: 'text', text: 'noon' }, image] },
      { role: 'tool', tool_call_id: 'a', content: 'Rain' },
      { role: 'user', content: 'So?' },
    ];
    const results = [
      { id: 'b', text: 'noon', images: [{ mediaType: 'image/png', data: png, at: 4 }], isError: false },
      { id: 'a', text: 'Rain', isError: false },
    ];
    expect(asked({ messages, tools: [weather] }).job).toMatchObject({
      history: [
        { role: 'user', text: 'Hi' },
        {
          ...{ role: 'assistant', text: 'I look.' },
          calls: ['weather', 'time'].map((name, at) => ({ id: 'ab'[at], name, input: '{"a":1}' })),
        },
      ],
      ...{ text: 'So?', results },
    });
  });

  it('may end with results only, of functions and of custom tools', () => {
    const run = { id: 'c', type: 'custom', custom: { name: 'run', input: 'ls' } };
    const messages = [
      ...hi,
      { role: 'assistant', content: null, function_call: { name: 'weather', arguments: '{}' } },
      { role: 'function', name: 'weather', content: 'Sun' },
      { role: 'assistant', content: null, tool_calls: [run] },
      { role: 'tool', tool_call_id: 'c', content: 'a.txt' },
    ];
    const { job } = asked({ messages, tools: [weather, { type: 'custom', custom: { name: 'run' } }] });
    expect(job.history?.slice(1)).toEqual([
      { role: 'assistant', text: '', calls: [{ id: 'call_legacy_0', name: 'weather', input: '{}' }] },
      { role: 'user', text: '', results: [{ id: 'call_legacy_0', text: 'Sun', isError: false }] },
      { role: 'assistant', text: '', calls: [{ id: 'c', name: 'run', input: '{"input":"ls"}' }] },
    ]);
    expect([job.text, job.results]).toEqual(['', [{ id: 'c', text: 'a.txt', isError: false }]]);
  });
});

const user = (content: unknown) => ({ messages: [{ role: 'user', content }] });
const earlier = (message: object) => ({ messages: [message, ...hi] });

describe('A chat completion is rejected, with the field named,', () => {
  it.each<[object, string, string]>([
    [{ model: undefined }, 'model', 'must be sent'],
    [{ model: 5 }, 'model', 'must be a string'],
    [{ messages: undefined }, 'messages', 'must be sent'],
    [{ messages: 'Hi' }, 'messages', 'must be a list'],
    [{ messages: [] }, 'messages', 'must contain a message of the user'],
    [{ messages: [{ role: 'system', content: 'x' }] }, 'messages', 'must contain a message of the user'],
    [{ messages: [...hi, { role: 'assistant', content: 'So' }] }, 'messages', 'must end with a message of the user'],
    [{ messages: [5] }, 'messages[0]', 'must be an object'],
    [{ messages: [{ content: 'Hi' }] }, 'messages[0].role', 'must be sent'],
    [earlier({ role: 'tool', content: 5 }), 'messages[0].content', 'must be text, or a list of parts'],
    [earlier({ role: 'bot', content: 'x' }), 'messages[0].role', 'must be system, developer, user, assistant or tool'],
    [earlier({ role: 'system', content: [image] }), 'messages[0].content[0].type', 'must be one of text, refusal'],
    [
      earlier({ role: 'assistant', tool_calls: [{ function: { arguments: {} } }] }),
      'messages[0].tool_calls[0].function.arguments',
      'must be a string',
    ],
    [user(undefined), 'messages[0].content', 'must be sent'],
    [user(null), 'messages[0].content', 'must be sent'],
    [user(''), 'messages', 'must end with a message that has text'],
    [user([]), 'messages', 'must end with a message that has text'],
    [user([{ type: 'text', text: ' ' }]), 'messages', 'must end with a message that has text'],
    [user(5), 'messages[0].content', 'must be text, or a list of parts'],
    [user(['x']), 'messages[0].content', 'must be text, or a list of parts'],
    [user([{ type: 'text' }]), 'messages[0].content[0].text', 'must be sent'],
    [user([{ type: 'text', text: 5 }]), 'messages[0].content[0].text', 'must be a string'],
    [
      user([{ type: 'input_audio', input_audio: {} }]),
      'messages[0].content[0].type',
      'must be one of text, refusal, image_url',
    ],
    [user([{ type: 'file', file: { file_id: 'x' } }]), 'messages[0].content[0].type', 'must be one of'],
    [user([{ type: 'toString' }]), 'messages[0].content[0].type', 'must be one of'],
    [user([{ type: 'image_url' }]), 'messages[0].content[0].image_url.url', 'must be sent as a data URL'],
    [user([{ type: 'image_url', image_url: { url: 5 } }]), 'messages[0].content[0].image_url.url', 'must be a string'],
    [
      user([{ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }]),
      'messages[0].content[0].image_url.url',
      'images are not fetched',
    ],
    [
      user([{ type: 'image_url', image_url: { url: 'data:image/png;base64,aGVsbG8=' } }]),
      'messages[0].content[0].image_url.url',
      'is not a file of the type image/png',
    ],
    [{ n: 2 }, 'n', 'must be 1'],
    [{ n: '1' }, 'n', 'must be a number'],
    [{ logprobs: true }, 'logprobs', 'is not supported'],
    [{ top_logprobs: 3 }, 'top_logprobs', 'is not supported'],
    [{ audio: { voice: 'alloy' } }, 'audio', 'is not supported'],
    [{ modalities: ['text', 'audio'] }, 'modalities', 'must contain only text'],
    [{ stream: 'yes' }, 'stream', 'must be true or false'],
    [{ stream_options: { include_usage: 1 } }, 'stream_options.include_usage', 'must be true or false'],
    [{ stop: 5 }, 'stop', 'must be text, or a list of 16 at most'],
    [{ stop: Array.from({ length: 17 }, String) }, 'stop', 'must be text, or a list of 16 at most'],
    [{ stop: 'x'.repeat(501) }, 'stop', 'must be at most 500 characters'],
    [{ tools: {} }, 'tools', 'must be a list'],
    [{ tools: [{ type: 'function', function: {} }] }, 'tools[0].function.name', 'must be sent'],
    [
      { tools: [{ type: 'function', function: { name: 'f', parameters: [] } }] },
      'tools[0].function.parameters',
      'must be a JSON Schema',
    ],
    [{ tool_choice: 'required' }, 'tool_choice', 'needs tools'],
    [
      { tools: [time], tool_choice: { type: 'function', function: { name: 'weather' } } },
      'tool_choice',
      'must name one of the tools',
    ],
    [{ tools: [time], tool_choice: 'any' }, 'tool_choice', 'must be none, auto, required, one function'],
    [{ tools: [time], tool_choice: { type: 'custom', custom: {} } }, 'tool_choice', 'must be none, auto, required'],
    [
      { tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'string' } } }] },
      'tools[0].function',
      'must have the schema of an object',
    ],
    [{ tools: [{ type: 'function' }] }, 'tools[0].function', 'must be sent'],
    [{ tools: [search] }, 'tools', 'web_search can only run on the provider'],
    [{ tools: [time, time] }, 'tools[1].function.name', 'must not be the name of another tool'],
    [{ tools: [{ type: 'custom' }] }, 'tools[0].custom.name', 'must be sent'],
    [{ temperature: 3 }, 'temperature', 'must be 0 to 2'],
    [{ top_p: '1' }, 'top_p', 'must be a number'],
    [{ max_tokens: 0 }, 'max_tokens', 'must be at least 1'],
    [
      {
        tools: [time],
        messages: [
          ...hi,
          { role: 'assistant', tool_calls: [{ id: 'x', function: { name: 'time', arguments: '' } }] },
          ...hi,
        ],
      },
      'messages',
      'missing for x',
    ],
    [{ tools: [time], messages: [...hi, { role: 'tool', content: 'x' }] }, 'messages[1].tool_call_id', 'must be sent'],
    [{ functions: {} }, 'functions', 'must be a list'],
    [{ functions: [{}] }, 'functions[0].name', 'must be sent'],
    [{ function_call: 'weather' }, 'function_call', 'must be none, auto or one function'],
    [{ function_call: { name: 'weather' } }, 'function_call', 'needs tools'],
    [
      { functions: [{ name: 'f', parameters: { type: 'string' } }], function_call: { name: 'f' } },
      'functions[0]',
      'must have the schema of an object',
    ],
    [{ guided_json: [] }, 'guided_json', 'must be a JSON Schema'],
    [{ guided_json: '[1]' }, 'guided_json', 'must be a JSON Schema'],
    [{ guided_json: '{' }, 'guided_json', 'must be a JSON Schema'],
    [{ guided_json: { type: 'array' } }, 'guided_json', 'must have an object at its root'],
    [
      { response_format: { type: 'json_object', schema: { type: 'array' } } },
      'response_format.schema',
      'must have an object at its root',
    ],
    [{ response_format: { type: 'xml' } }, 'response_format.type', 'must be text, json_object or json_schema'],
    [{ response_format: { type: 'json_schema' } }, 'response_format.json_schema.schema', 'must be sent'],
    [
      { response_format: { type: 'json_schema', json_schema: { schema: 'x' } } },
      'response_format.json_schema.schema',
      'must be a JSON Schema',
    ],
    [
      { response_format: { type: 'json_schema', json_schema: { schema: { type: 'array' } } } },
      'response_format.json_schema.schema',
      'must have an object at its root',
    ],
    [{ reasoning_effort: 5 }, 'reasoning_effort', 'must be a string'],
    [{ user: {} }, 'user', 'must be a string'],
  ])('%j', async (body, param, message) => {
    await using door = await openAiDoor(always(...begun, ...answerEvents('x'), jobDone()));
    const answer = await door.post('/v1/chat/completions', { model: 'eliza', messages: hi, ...body });
    const error = {
      type: 'invalid_request_error',
      code: 'validation_error',
      param,
      message: expect.stringContaining(message),
    };
    expect(answer).toMatchObject({ status: 400, body: { error } });
    expect(door.primary.calls).toEqual([]);
  });

  it.each(['{', '[]', '"Hi"', 'null'])('if the body is not an object: %s', async (body) => {
    await using door = await openAiDoor(always());
    const error = { type: 'invalid_request_error', code: 'validation_error', param: null };
    expect(await door.post('/v1/chat/completions', body)).toMatchObject({ status: 400, body: { error } });
  });

  it('if its schema is invalid', async () => {
    await using door = await openAiDoor(always(), { schemaFault: 'strict mode: unknown keyword' });
    const answer = await door.post('/v1/chat/completions', { model: 'eliza', messages: hi, response_format: format });
    const error = { param: 'response_format.json_schema.schema', message: expect.stringContaining('unknown keyword') };
    expect(answer).toMatchObject({ status: 400, body: { error } });
  });

  it('except for a model with an odd name, which does not exist', async () => {
    await using door = await openAiDoor(always());
    const answer = await door.post('/v1/chat/completions', { model: '--help', messages: hi });
    expect(answer).toMatchObject({ status: 404, body: { error: { code: 'model_not_found', param: 'model' } } });
  });
});

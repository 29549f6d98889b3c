import { chatCompletionRequest, parseChat } from '../../../../src/features/openai/chat-request.js';
import { pdfOf } from '../../../support/basics/pdf.js';
import { always, answerEvents, begun, sdkDoor } from '../../../support/doors/sdk-door.js';
import { assistant, plainJob, png, pngAt, system, textPart, user } from '../../../support/doors/sdk-messages.js';
import { jobDone } from '../../../support/jobs/job-records.js';

const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${png}`, detail: 'low' } };
const hi = [user('Hi')];
const parameters = { type: 'object', properties: { city: { type: 'string' } } };
const func = (fields: object) => ({ type: 'function', function: fields });
const weather = func({ name: 'weather', description: 'of a city', parameters });
const time = func({ name: 'time' });
const run = { type: 'custom', custom: { name: 'run' } };
/** Calls of a function and of the custom tool, and the result of a call. */
const call = (id: string, name: string, input = '{}') => ({ id, ...func({ name, arguments: input }) });
const runCall = { id: 'c', type: 'custom', custom: { name: 'run', input: 'ls' } };
const result = (id: string, content: unknown) => ({ role: 'tool', tool_call_id: id, content });
const weatherTool = { name: 'weather', description: 'of a city', schema: JSON.stringify(parameters) };
const timeTool = { name: 'time', description: '', schema: '{"type":"object"}' };
const search = { type: 'web_search' };
const schema = { type: 'object', properties: { a: { type: 'string' } } };
const format = { type: 'json_schema', json_schema: { name: 'a', strict: true, schema } };

const wishFields = { temperature: 'temperature', topP: 'top_p' };

function asked(body: object) {
  return parseChat(chatCompletionRequest.parse({ model: 'eliza', messages: hi, ...body }));
}

describe('A chat completion asks for', () => {
  it('one answer to the last message, with the history in its roles', () => {
    const messages = [
      system('Be brief.'),
      user('a'),
      { role: 'developer', content: [textPart('Be kind.')] },
      assistant('b', { refusal: null, tool_calls: null }),
      { ...user([textPart('what is'), image, textPart('this')]), name: 'ada' },
    ];
    expect(asked({ messages })).toEqual({
      job: plainJob({
        text: 'what isthis',
        images: pngAt(7),
        history: [
          { role: 'user', text: 'a' },
          { role: 'assistant', text: 'b' },
        ],
        system: 'Be brief.\n\nBe kind.',
        stop: [],
      }),
      model: 'eliza',
      forms: {},
      droppedTools: [],
      wishFields: { ...wishFields, maxTokens: 'max_tokens', isParallel: 'parallel_tool_calls' },
      ignored: ['messages.name', 'messages.content.image_url.detail'],
      effortField: 'reasoning_effort',
      imageField: 'messages.4.content.1',
      documentField: null,
      schemaWish: null,
      wantsUsage: false,
      isLegacyCall: false,
    });
  });

  it.each([
    [{}, 'progress'],
    [{ reasoning_effort: 'none' }, undefined],
    [{ reasoning_effort: 'low' }, 'summarized'],
    [{ tools: [] }, undefined],
  ])('words about progress beside tools, unless it says something about thoughts: %j', (more, thinking) => {
    expect(asked({ tools: [{ type: 'function', function: { name: 'f' } }], ...more }).job.thinking).toBe(thinking);
  });

  it('an answer to a question with files', () => {
    const data = pdfOf({ pages: 2 }).toString('base64');
    const file = (fields: object) => ({ type: 'file', file: { filename: 'a', ...fields } });
    const files = [
      file({ file_data: `data:application/pdf;base64,${data}`, file_id: null }),
      file({ file_data: 'SGk=' }),
    ];
    const { job, ignored, documentField } = asked({
      messages: [{ role: 'user', content: [...files, { type: 'text', text: 'a' }] }],
    });
    expect(job).toMatchObject({
      text: 'a',
      images: [{ data, name: 'a', path: 'messages.0.content.0.file.file_data', at: 0 }, { mediaType: 'text/plain' }],
    });
    expect([ignored, documentField]).toEqual([[], 'messages.0.content.0']);
  });

  it('an answer after the results of calls, which are text if there are no tools', () => {
    const messages = [
      ...hi,
      assistant(null, { tool_calls: [call('a', 'weather'), call('b', 'time')] }),
      result('b', [textPart('12 o’clock'), image]),
      result('a', 'Rain'),
      result('unknown', null),
      assistant(null, { function_call: { name: 'weather', arguments: '{"city":"Ulm"}' } }),
      { role: 'function', name: 'weather', content: 'Sun' },
      assistant(null, { tool_calls: [runCall] }),
      result('c', 'a.txt'),
    ];
    const { job, ignored } = asked({ messages });
    expect(job.history).toEqual([
      { role: 'user', text: 'Hi' },
      { role: 'assistant', text: '{}\n\n{}' },
      {
        role: 'user',
        text: 'Result of time:\n\n12 o’clock\n\nResult of weather:\n\nRain\n\nResult of the function:',
        images: pngAt(27),
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
    ['that was a call', assistant(null, { tool_calls: [{ id: 'x', function: { arguments: '{}' } }] }), '{}'],
    ['that was refused', assistant([{ type: 'refusal', refusal: 'No.' }]), 'No.'],
    ['in parts', assistant([textPart('b'), textPart('c')]), 'b\n\nc'],
  ])('an answer after an answer %s', (_, message, text) => {
    const { job } = asked({ messages: [...hi, message, ...hi] });
    expect(job.history?.at(-1)).toEqual({ role: 'assistant', text });
  });

  it('an answer after an empty one', () => {
    const { job } = asked({ messages: [...hi, assistant(null), user('b')] });
    expect(job).toMatchObject({ text: 'Hi\n\nb', history: [] });
  });

  const named = { name: 'weather' };
  const formatPath = { path: 'response_format.json_schema.schema', value: schema };

  it.each<[object, object, string[]]>([
    [{}, { schema: undefined, offer: undefined }, []],
    [{ stream: true, stream_options: { include_usage: true } }, { stream: true, wantsUsage: true }, []],
    [{ stop: 'X' }, { stop: ['X'] }, []],
    [{ stop: ['X', '', 'Y'] }, { stop: ['X', 'Y'] }, []],
    [{ stop: null, n: 1, logprobs: false, modalities: ['text'], tools: [], user: null }, { stop: [] }, []],
    [{ top_logprobs: 0 }, {}, ['top_logprobs']],
    [
      { temperature: 1, max_tokens: 5, max_completion_tokens: null },
      { sampling: { temperature: 1, maxTokens: 5 } },
      [],
    ],
    [{ seed: 2, store: true, metadata: {} }, { sampling: undefined }, ['seed', 'store', 'metadata']],
    [
      { top_p: 0.5, max_tokens: 5, max_completion_tokens: 6 },
      { sampling: { topP: 0.5, maxTokens: 6 }, wishFields: { maxTokens: 'max_completion_tokens' } },
      [],
    ],
    [{ 'odd name\n': 1, user: 'joe' }, {}, ['user', '(odd name)']],
    [{ reasoning_effort: 'xhigh' }, { effort: 'xhigh' }, []],
    [{ reasoning_effort: 'minimal' }, { effort: 'low' }, []],
    [{ reasoning_effort: 'none' }, { effort: undefined }, ['reasoning_effort']],
    [{ reasoning_effort: 'toString' }, { effort: undefined }, ['reasoning_effort']],
    [{ response_format: { type: 'text' } }, { schema: undefined }, []],
    [
      { response_format: { type: 'json_object' } },
      {
        schema: { path: 'response_format', value: { type: 'object' } },
        schemaWish: expect.stringMatching(/json_schema.*supportsStruct/),
      },
      [],
    ],
    [{ response_format: format }, { schema: formatPath }, []],
    ...['json_object', 'json_schema'].map((type): [object, object, string[]] => [
      { response_format: { type, schema } },
      { schema: { path: 'response_format.schema', value: schema }, schemaWish: null },
      [],
    ]),
    [{ response_format: { type: 'text', schema } }, { schema: undefined }, ['response_format.schema']],
    [{ stream_options: { include_obfuscation: true } }, {}, ['stream_options.include_obfuscation']],
    [
      { response_format: { ...format, schema, json_schema: { ...format.json_schema, description: 'x' } } },
      { schema: formatPath },
      ['response_format.schema', 'response_format.json_schema.description'],
    ],
    [{ guided_json: schema }, { schema: { path: 'guided_json', value: schema }, schemaWish: null }, []],
    [{ guided_json: JSON.stringify(schema) }, { schema: { path: 'guided_json', value: schema } }, []],
    [
      { guided_json: schema, response_format: { type: 'text' } },
      { schema: { path: 'guided_json', value: schema } },
      [],
    ],
    [
      { guided_json: { type: 'object' }, response_format: format, guided_regex: 'x' },
      { schema: formatPath },
      ['guided_regex', 'guided_json'],
    ],
    [{ response_format: format, stop: 'X' }, { stop: [] }, ['stop']],
    [{ tools: [weather, time] }, { offer: { tools: [weatherTool, timeTool], choice: 'auto', isParallel: true } }, []],
    [
      { tools: [weather], tool_choice: 'none', parallel_tool_calls: false },
      { offer: { tools: [weatherTool], choice: 'none', isParallel: false } },
      [],
    ],
    [{ tools: [weather], tool_choice: 'required' }, { offer: { choice: 'required' } }, []],
    [
      { tools: [time, weather], tool_choice: func(named), stop: ['X'], response_format: format },
      { offer: { choice: named }, schema: { value: schema }, stop: [] },
      ['stop'],
    ],
    [
      { functions: [time.function, weather.function], function_call: named, guided_json: schema },
      {
        offer: { tools: [timeTool, weatherTool], choice: named, isParallel: false },
        ...{ isLegacyCall: true, schema: { path: 'guided_json' } },
      },
      [],
    ],
    [{ functions: [weather.function] }, { offer: { choice: 'auto' }, isLegacyCall: true }, []],
    [
      { tools: [weather], tool_choice: 'required', functions: [time.function], function_call: { name: 'time' } },
      { offer: { tools: [weatherTool] }, isLegacyCall: false },
      [],
    ],
    [
      { tools: [{ ...weather, cache_control: { type: 'ephemeral' } }, search] },
      { offer: { tools: [weatherTool] }, droppedTools: ['web_search'] },
      ['tools.web_search', 'tools.cache_control'],
    ],
    [
      { tools: [func({ ...weather.function, strict: true })] },
      { offer: { tools: [{ ...weatherTool, isStrict: true }] } },
      [],
    ],
    [{ tools: [func({ ...weather.function, strict: false })] }, { offer: { tools: [weatherTool] } }, []],
    [
      { tools: [run], tool_choice: run },
      { offer: { choice: { name: 'run' } }, forms: { run: { isCustom: true, name: 'run' } } },
      [],
    ],
    [{ functions: [], function_call: 'none', tools: [] }, { offer: undefined }, []],
    [{ tools: [], parallel_tool_calls: true }, { offer: undefined }, ['parallel_tool_calls']],
  ])('the options of %j', (body, expected, ignored) => {
    const { job, ...rest } = asked(body);
    expect({ ...job, ...rest }).toMatchObject({ ...expected, ignored });
  });
});

describe('With tools, a chat completion', () => {
  it('has calls and results with their ids, and images in results', () => {
    const messages = [
      ...hi,
      assistant('I look.', { tool_calls: [call('a', 'weather', '{"a":1}'), call('b', 'time', '{"a":1}')] }),
      result('b', [textPart('noon'), image]),
      result('a', 'Rain'),
      user('So?'),
    ];
    const calls = ['weather', 'time'].map((name, at) => ({ id: 'ab'[at], name, input: '{"a":1}' }));
    expect(asked({ messages, tools: [weather] }).job).toMatchObject({
      history: [
        { role: 'user', text: 'Hi' },
        { role: 'assistant', text: 'I look.', calls },
      ],
      text: 'So?',
      results: [
        { id: 'b', text: 'noon', images: pngAt(4), isError: false },
        { id: 'a', text: 'Rain', isError: false },
      ],
    });
  });

  it('may end with results only, of functions and of custom tools', () => {
    const messages = [
      ...hi,
      assistant(null, { function_call: { name: 'weather', arguments: '{}' } }),
      { role: 'function', name: 'weather', content: 'Sun' },
      assistant(null, { tool_calls: [runCall] }),
      result('c', 'a.txt'),
    ];
    const { job } = asked({ messages, tools: [weather, run] });
    expect(job.history?.slice(1)).toEqual([
      { role: 'assistant', text: '', calls: [{ id: 'call_legacy_0', name: 'weather', input: '{}' }] },
      { role: 'user', text: '', results: [{ id: 'call_legacy_0', text: 'Sun', isError: false }] },
      { role: 'assistant', text: '', calls: [{ id: 'c', name: 'run', input: '{"input":"ls"}' }] },
    ]);
    expect([job.text, job.results]).toEqual(['', [{ id: 'c', text: 'a.txt', isError: false }]]);
  });
});

const asks = (content: unknown) => ({ messages: [user(content)] });
const earlier = (message: object) => ({ messages: [message, ...hi] });
const sendsImage = (image_url?: object) => asks([{ type: 'image_url', image_url }]);
const formatted = (response_format: object) => ({ response_format });
const [part, url] = ['messages[0].content[0].type', 'messages[0].content[0].image_url.url'];
const schemaPath = 'response_format.json_schema.schema';
const arrays = { type: 'array' };
const refusal = { type: 'invalid_request_error', code: 'validation_error' };

describe('A chat completion is rejected, with the field named,', () => {
  it.each<[object, string, string]>([
    [{ model: 5 }, 'model', 'must be a string'],
    [{ messages: undefined }, 'messages', 'must be sent'],
    [{ messages: 'Hi' }, 'messages', 'must be a list'],
    [{ messages: [] }, 'messages', 'must contain a message of the user'],
    [{ messages: [system('x')] }, 'messages', 'must contain a message of the user'],
    [{ messages: [...hi, assistant('So')] }, 'messages', 'must end with a message of the user'],
    [{ messages: [5] }, 'messages[0]', 'must be an object'],
    [{ messages: [{ content: 'Hi' }] }, 'messages[0].role', 'must be sent'],
    [earlier({ role: 'tool', content: 5 }), 'messages[0].content', 'must be text, or a list of parts'],
    [earlier({ role: 'bot', content: 'x' }), 'messages[0].role', 'must be system, developer, user, assistant or tool'],
    [earlier(system([image])), part, 'must be one of text, refusal'],
    [
      earlier(assistant(undefined, { tool_calls: [{ function: { arguments: 5 } }] })),
      'messages[0].tool_calls[0].function.arguments',
      'must be a string',
    ],
    [asks(undefined), 'messages[0].content', 'must be sent'],
    [asks(null), 'messages[0].content', 'must be sent'],
    [asks(''), 'messages', 'must end with a message that has text'],
    [asks([]), 'messages', 'must end with a message that has text'],
    [asks([textPart(' ')]), 'messages', 'must end with a message that has text'],
    [asks(5), 'messages[0].content', 'must be text, or a list of parts'],
    [asks(['x']), 'messages[0].content', 'must be text, or a list of parts'],
    [asks([{ type: 'text' }]), 'messages[0].content[0].text', 'must be sent'],
    [asks([{ type: 'text', text: 5 }]), 'messages[0].content[0].text', 'must be a string'],
    [asks([{ type: 'input_audio', input_audio: {} }]), part, 'must be one of text, refusal, image_url'],
    [asks([{ type: 'file' }]), `messages[0].content[0].file`, 'must be a file'],
    [
      asks([{ type: 'file', file: { file_data: 'data:application/pdf,x' } }]),
      `messages[0].content[0].file.file_data`,
      'must be a data URL',
    ],
    [asks([{ type: 'toString' }]), part, 'must be one of'],
    [sendsImage(), url, 'must be sent as a data URL'],
    [sendsImage({ url: 5 }), url, 'must be a string'],
    [sendsImage({ url: 'https://example.com/a.png' }), url, 'images are not fetched'],
    [sendsImage({ url: 'data:image/png;base64,aGVsbG8=' }), url, 'is not a file of the type image/png'],
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
    [{ tools: [func({})] }, 'tools[0].function.name', 'must be sent'],
    [{ tools: [func({ name: 'f', parameters: [1] })] }, 'tools[0].function.parameters', 'must be a JSON Schema'],
    [{ tool_choice: 'required' }, 'tool_choice', 'needs tools'],
    [{ tools: [time], tool_choice: func({ name: 'weather' }) }, 'tool_choice', 'must name one of the tools'],
    [{ tools: [time], tool_choice: 'all' }, 'tool_choice', 'must be none, auto, required, one function'],
    [{ tools: [time], tool_choice: { type: 'custom', custom: {} } }, 'tool_choice', 'must be none, auto, required'],
    [{ tools: [func({ name: 'f', parameters: arrays })] }, 'tools[0].function', 'must have the schema of an object'],
    [{ tools: [{ type: 'function' }] }, 'tools[0].function', 'must be sent'],
    [{ tools: [{ type: 'code_interpreter' }] }, 'tools', 'code_interpreter can only run on the provider'],
    [{ web_search_options: true }, 'web_search_options', 'must be an object'],
    [{ tools: [time, time] }, 'tools[1].function.name', 'must not be the name of another tool'],
    [{ tools: [{ type: 'custom' }] }, 'tools[0].custom.name', 'must be sent'],
    [{ temperature: 3 }, 'temperature', 'must be 0 to 2'],
    [{ top_p: '1' }, 'top_p', 'must be a number'],
    [{ max_tokens: -2 }, 'max_tokens', 'must be at least 1, or -1'],
    [
      { tools: [time], messages: [...hi, assistant(null, { tool_calls: [call('x', 'time', '')] }), ...hi] },
      'messages',
      'missing for x',
    ],
    [
      { tools: [time], messages: [...hi, { role: 'tool', content: 'x' }] },
      'messages',
      'must have a call for each result; missing for one without an id',
    ],
    [{ functions: {} }, 'functions', 'must be a list'],
    [{ functions: [{}] }, 'functions[0].name', 'must be sent'],
    [{ function_call: 'weather' }, 'function_call', 'must be none, auto or one function'],
    [{ function_call: { name: 'weather' } }, 'function_call', 'needs tools'],
    [{ functions: [{ name: 'f', parameters: arrays }] }, 'functions[0]', 'must have the schema of an object'],
    [{ guided_json: [] }, 'guided_json', 'must be a JSON Schema'],
    [{ guided_json: '[1]' }, 'guided_json', 'must be a JSON Schema'],
    [{ guided_json: '{' }, 'guided_json', 'must be a JSON Schema'],
    [{ guided_json: arrays }, 'guided_json', 'must have an object at its root'],
    [formatted({ type: 'json_object', schema: arrays }), 'response_format.schema', 'must have an object at its root'],
    [formatted({ type: 'xml' }), 'response_format.type', 'must be text, json_object or json_schema'],
    [formatted({ type: 'json_schema' }), schemaPath, 'must be sent'],
    [formatted({ type: 'json_schema', json_schema: { schema: 'x' } }), schemaPath, 'must be a JSON Schema'],
    [
      formatted({ type: 'json_schema', json_schema: { schema: arrays } }),
      schemaPath,
      'must have an object at its root',
    ],
    [{ reasoning_effort: 5 }, 'reasoning_effort', 'must be a string'],
    [{ user: {} }, 'user', 'must be a string'],
  ])('%j', async (body, param, message) => {
    await using door = await sdkDoor(always(...begun, ...answerEvents('x'), jobDone()));
    const answer = await door.post('/v1/chat/completions', { model: 'eliza', messages: hi, ...body });
    const error = { ...refusal, param, message: expect.stringContaining(message) };
    expect(answer).toMatchObject({ status: 400, body: { error } });
    expect(door.primary.calls).toEqual([]);
  });

  it.each(['{', '[]', '"Hi"', 'null'])('if the body is not an object: %s', async (body) => {
    await using door = await sdkDoor(always());
    const error = { ...refusal, param: null };
    expect(await door.post('/v1/chat/completions', body)).toMatchObject({ status: 400, body: { error } });
  });

  it('if its schema is invalid', async () => {
    await using door = await sdkDoor(always(), { schemaFault: 'strict mode: unknown keyword' });
    const answer = await door.post('/v1/chat/completions', { model: 'eliza', messages: hi, ...formatted(format) });
    const error = { param: schemaPath, message: expect.stringContaining('unknown keyword') };
    expect(answer).toMatchObject({ status: 400, body: { error } });
  });

  it('except for a model with an odd name, which does not exist', async () => {
    await using door = await sdkDoor(always());
    const answer = await door.post('/v1/chat/completions', { model: '--help', messages: hi });
    expect(answer).toMatchObject({ status: 404, body: { error: { code: 'model_not_found', param: 'model' } } });
  });
});

describe('The models of a chat completion', () => {
  const modelOf = (body: object) => parseChat(chatCompletionRequest.parse({ messages: hi, ...body })).job.model;

  it.each([
    [{ model: 'a' }, 'a'],
    [{ model: 'a,b' }, 'a,b'],
    [{ model: 'a', models: ['b', 'a', 'c'] }, 'a,b,c'],
    [{ models: ['a', 'b'] }, 'a,b'],
    [{ model: 'a', models: null }, 'a'],
    [{ models: [] }, undefined],
    [{ model: '' }, undefined],
  ])('are in order: %j', (body, model) => {
    expect(modelOf(body)).toBe(model);
  });

  it.each([[{ model: 'a', models: [...'bcdefghi'] }, 'models: must be at most 8 models, with model']])(
    'are refused: %j',
    (body, message) => {
      expect(() => modelOf(body)).toThrow(message);
    },
  );
});

import type { ContinuedText } from '../../../../src/shared/job.js';
import { responsesRequest } from '../../../../src/worker/openai/responses-input.js';
import { parseResponses } from '../../../../src/worker/openai/responses-request.js';
import { always, openAiDoor } from '../../../support/doors/openai-door.js';
import { headOf } from '../../../support/stores/response-store-contract.js';

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const image = { type: 'input_image', detail: 'auto', image_url: `data:image/png;base64,${png}` };
const hi = { role: 'user', content: 'Hi' };
const parameters = { type: 'object', properties: { city: { type: 'string' } } };
const weather = { type: 'function', name: 'weather', description: 'of a city', parameters, strict: false };
const time = { type: 'function', name: 'time' };
const weatherTool = { name: 'weather', description: 'of a city', schema: JSON.stringify(parameters) };
const format = { type: 'json_schema', name: 'a', strict: true, schema: parameters };

function asked(body: object) {
  return parseResponses(responsesRequest.parse({ model: 'eliza', input: 'Hi', ...body }));
}

function parsedAfter(body: object, earlier: ContinuedText) {
  return parseResponses(responsesRequest.parse({ model: 'eliza', ...body }), earlier);
}

describe('A response asks for', () => {
  it('one answer to a text', () => {
    expect(asked({})).toEqual({
      job: {
        operation: 'ask',
        isEffortNeeded: false,
        text: 'Hi',
        images: undefined,
        history: [],
        system: undefined,
        model: 'eliza',
        results: undefined,
        offer: undefined,
        schema: undefined,
        effort: undefined,
        sampling: undefined,
        stream: false,
      },
      model: 'eliza',
      forms: {},
      droppedTools: [],
      wishFields: {
        temperature: 'temperature',
        topP: 'top_p',
        maxTokens: 'max_output_tokens',
        isParallel: 'parallel_tool_calls',
      },
      ignored: [],
      effortField: 'reasoning.effort',
      imageField: null,
      schemaWish: null,
    });
  });

  it('an answer that continues a stored text, with results for its open calls', () => {
    const earlier = { ...headOf('one'), openCalls: [{ id: 'a', name: 'weather', input: '' }] };
    const results = { type: 'function_call_output', call_id: 'a', output: 'Rain' };
    const withTools = parsedAfter({ input: [results], tools: [weather] }, earlier);
    expect(withTools).toMatchObject({ job: { history: [], earlier, text: '', results: [{ id: 'a', text: 'Rain' }] } });
    expect(() => parsedAfter({ input: 'So?', tools: [weather] }, earlier)).toThrow('missing for a');
    expect(parsedAfter({ input: 'So?' }, earlier).job).toMatchObject({ history: [], earlier, text: 'So?' });
  });

  it('an answer after the results of calls, which are text if there are no tools', () => {
    const input = [
      hi,
      { type: 'function_call', call_id: 'a', name: 'weather', arguments: '{}' },
      { type: 'custom_tool_call', call_id: 'b', name: 'run', input: 'ls' },
      { type: 'function_call_output', call_id: 'a', output: 'Rain' },
      { type: 'custom_tool_call_output', call_id: 'b', output: [{ type: 'input_text', text: 'a.txt' }, image] },
    ];
    const { job, imageField, ignored } = asked({ input });
    expect(job).toMatchObject({
      history: [
        { role: 'user', text: 'Hi' },
        { role: 'assistant', text: '{}\n\nls' },
      ],
      text: 'Result of weather:\n\nRain\n\nResult of run:\n\na.txt',
      images: [{ mediaType: 'image/png', data: png, at: 47 }],
    });
    expect([imageField, ignored]).toEqual(['input.4.output.1', []]);
  });

  it('an answer after calls and results with their ids, if it has tools', () => {
    const input = [
      hi,
      { type: 'function_call', call_id: 'a', name: 'time', namespace: 'crm', arguments: '{}' },
      { type: 'custom_tool_call', call_id: 'b', name: 'run', input: 'ls' },
      { type: 'function_call_output', call_id: 'a', output: 'Noon' },
      { type: 'custom_tool_call_output', call_id: 'b', output: [{ type: 'input_text', text: 'a.txt' }, image] },
    ];
    expect(asked({ input, tools: [weather] }).job).toMatchObject({
      history: [
        { role: 'user', text: 'Hi' },
        {
          ...{ role: 'assistant', text: '' },
          calls: [
            { id: 'a', name: 'crm__time', input: '{}' },
            { id: 'b', name: 'run', input: '{"input":"ls"}' },
          ],
        },
      ],
      text: '',
      results: [
        { id: 'a', text: 'Noon' },
        { id: 'b', text: 'a.txt', images: [{ mediaType: 'image/png', data: png, at: 5 }] },
      ],
    });
  });

  it('one answer to the last of several items', () => {
    const input = [
      { role: 'system', content: 'Be kind.' },
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'a' }] },
      { type: 'reasoning', id: 'rs_1', summary: [] },
      {
        type: 'message',
        id: 'msg_1',
        status: 'completed',
        role: 'assistant',
        content: [{ type: 'output_text', text: 'b', annotations: [] }],
      },
      { role: 'developer', content: [{ type: 'input_text', text: 'Be quick.' }] },
      { role: 'user', content: 'c' },
      { type: 'function_call', call_id: 'x', name: 'weather', arguments: '{"city":"Ulm"}' },
      { role: 'user', content: [{ type: 'input_text', text: 'see' }, image] },
    ];
    expect(asked({ input, instructions: 'Be brief.' }).job).toMatchObject({
      system: 'Be brief.\n\nBe kind.',
      history: [
        { role: 'user', text: 'a' },
        { role: 'assistant', text: 'b' },
        { role: 'user', text: '<system-reminder>\nBe quick.\n</system-reminder>\n\nc' },
        { role: 'assistant', text: '{"city":"Ulm"}' },
      ],
      text: 'see',
      images: [{ mediaType: 'image/png', data: png, at: 3 }],
    });
  });

  it.each([
    [
      { stream: true, instructions: null, previous_response_id: null, background: false },
      { stream: true, ignored: [] },
    ],
    [
      { temperature: 1, store: true, include: [], max_output_tokens: 5 },
      { sampling: { temperature: 1, maxTokens: 5 }, ignored: ['include'] },
    ],
    [{ text: { format: { type: 'text' }, verbosity: 'low' } }, { schema: undefined, ignored: ['text.verbosity'] }],
    [{ text: { format: { type: 'json_object' } } }, { schema: { path: 'text.format', value: { type: 'object' } } }],
    [{ text: { format } }, { schema: { path: 'text.format.schema', value: parameters }, ignored: [] }],
    [{ text: { format: { ...format, description: 'x' } } }, { ignored: ['text.format.description'] }],
    [{ text: { format: { type: 'text', schema: {} } } }, { schema: undefined, ignored: ['text.format.schema'] }],
    [{ text: { format: { type: 'json_object' } } }, { schemaWish: expect.stringContaining('text.format') }],
    [
      { text: { format: { type: 'json_object', schema: parameters } } },
      { schema: { path: 'text.format.schema', value: parameters }, schemaWish: null, ignored: [] },
    ],
    [{ input: [{ ...hi, phase: 'x' }] }, { ignored: ['input.phase'] }],
    [
      { input: [{ role: 'user', content: [{ type: 'input_text', text: 'a' }, image] }] },
      { imageField: 'input.0.content.1', ignored: ['input.content.detail'] },
    ],
    [{ reasoning: { effort: 'high', summary: 'auto' } }, { effort: 'high', thinking: 'summarized', ignored: [] }],
    [{ reasoning: { effort: 'high' } }, { effort: 'high', thinking: 'omitted' }],
    [{ reasoning: { summary: 'concise' } }, { effort: undefined, thinking: 'summarized' }],
    [{ reasoning: { effort: 'none', summary: 'none' } }, { effort: undefined, thinking: undefined }],
    [{ reasoning: { effort: 'none' } }, { effort: undefined, ignored: ['reasoning.effort'] }],
    [
      { tools: [weather, time], tool_choice: 'auto' },
      { offer: { tools: [weatherTool, { name: 'time' }], choice: 'auto', isParallel: true }, ignored: [] },
    ],
    [
      { tools: [{ ...weather, strict: true }, { type: 'web_search' }], tool_choice: 'required' },
      {
        offer: { tools: [{ ...weatherTool, isStrict: true }], choice: 'required' },
        droppedTools: ['web_search'],
        ignored: ['tools.web_search'],
      },
    ],
    [
      { tools: [time, weather], tool_choice: { type: 'function', name: 'weather' }, text: { format } },
      { offer: { choice: { name: 'weather' } }, schema: { value: parameters }, ignored: [] },
    ],
    [
      {
        tools: [
          { type: 'namespace', name: 'crm', tools: [time] },
          { type: 'custom', name: 'run' },
        ],
        tool_choice: { type: 'function', name: 'time', namespace: 'crm' },
        parallel_tool_calls: false,
      },
      {
        offer: { tools: [{ name: 'crm__time' }, { name: 'run' }], choice: { name: 'crm__time' }, isParallel: false },
        forms: {
          crm__time: { isCustom: false, name: 'time', namespace: 'crm' },
          run: { isCustom: true, name: 'run' },
        },
        ignored: [],
      },
    ],
    [
      {
        input: [
          {
            type: 'additional_tools',
            role: 'developer',
            id: 'at_1',
            tools: [{ type: 'namespace', name: 'functions', tools: [{ type: 'custom', name: 'run' }] }],
          },
          { role: 'user', content: 'Hi' },
        ],
        tools: [time],
        tool_choice: 'auto',
      },
      {
        text: 'Hi',
        system: undefined,
        offer: { tools: [{ name: 'time' }, { name: 'functions__run' }] },
        forms: { functions__run: { isCustom: true, name: 'run', namespace: 'functions' } },
        ignored: [],
      },
    ],
    [{ tool_choice: 'auto', parallel_tool_calls: true }, { ignored: ['tool_choice', 'parallel_tool_calls'] }],
  ])('the options of %j', (body, expected) => {
    const { job, ...rest } = asked(body);
    expect({ ...job, ...rest }).toMatchObject(expected);
  });
});

const items = (...input: readonly unknown[]) => ({ input });
const user = (content: unknown) => items({ role: 'user', content });

describe('A response is rejected, with the field named,', () => {
  it.each<[object, string, string]>([
    [{ model: undefined }, 'model', 'must be sent'],
    [{ input: undefined }, 'input', 'must be text, or a list of items'],
    [
      items({ type: 'additional_tools', tools: [{ type: 'function', name: 'a b' }] }, { role: 'user', content: 'Hi' }),
      'input[0].tools[0].name',
      'must be 1 to 128 letters, digits, _ and -',
    ],
    [{ input: 5 }, 'input', 'must be text, or a list of items'],
    [{ input: '' }, 'input', 'must end with a message that has text'],
    [items(), 'input', 'must contain a message of the user'],
    [items(hi, { role: 'assistant', content: 'So' }), 'input', 'must end with a message of the user'],
    [items({ role: 'bot', content: 'x' }), 'input[0].role', 'must be system, developer, user or assistant'],
    [items({ content: 'x' }), 'input[0].role', 'must be system, developer, user or assistant'],
    [items({ role: 'user' }), 'input[0].content', 'must be sent'],
    [items({ role: 'system', content: [image] }, hi), 'input[0].content[0].type', 'must be one of input_text'],
    [items({ type: 'item_reference', id: 'msg_1' }, hi), 'input[0].id', 'of a stored response'],
    [items(hi, { type: 'computer_call_output' }), 'input[1].type', 'must be message'],
    [items({ type: 'function_call', arguments: {} }, hi), 'input[0].arguments', 'must be a string'],
    [user([{ type: 'input_file', file_id: 'x' }]), 'input[0].content[0].type', 'must be one of'],
    [user([{ type: 'input_image', file_id: 'x' }]), 'input[0].content[0].image_url', 'the service stores no files'],
    [
      user([{ type: 'input_image', image_url: 'https://example.com' }]),
      'input[0].content[0].image_url',
      'images are not fetched',
    ],
    [user([{ type: 'input_text', text: null }]), 'input[0].content[0].text', 'must be a string'],
    [{ instructions: ['x'] }, 'instructions', 'must be a string'],
    [{ previous_response_id: 5 }, 'previous_response_id', 'must be a string'],
    [{ store: 'yes' }, 'store', 'must be true or false'],
    [{ conversation: 'conv_1' }, 'conversation', 'send the whole conversation'],
    [{ prompt: { id: 'pmpt_1' } }, 'prompt', 'stores no templates'],
    [{ top_logprobs: 3 }, 'top_logprobs', 'is not supported'],
    [{ stream: 1 }, 'stream', 'must be true or false'],
    [{ text: { format: { type: 'xml' } } }, 'text.format.type', 'must be text, json_object or json_schema'],
    [{ text: { format: { type: 'json_schema' } } }, 'text.format.schema', 'must be sent'],
    [
      { text: { format: { type: 'json_schema', schema: { type: 'array' } } } },
      'text.format.schema',
      'must have an object at its root',
    ],
    [{ reasoning: { effort: 5 } }, 'reasoning.effort', 'must be a string'],
    [{ tools: [{ type: 'function' }] }, 'tools[0].name', 'must be sent'],
    [{ tools: [{ type: 'web_search' }], tool_choice: 'required' }, 'tools', 'web_search can only run on'],
    [
      { tools: [weather], tool_choice: { type: 'web_search' } },
      'tool_choice',
      'must be none, auto, required, one function',
    ],
  ])('%j', async (body, param, message) => {
    await using door = await openAiDoor(always());
    const answer = await door.post('/v1/responses', { model: 'eliza', input: 'Hi', ...body });
    const error = {
      type: 'invalid_request_error',
      code: 'validation_error',
      param,
      message: expect.stringContaining(message),
    };
    expect(answer).toMatchObject({ status: 400, body: { error } });
    expect(door.primary.calls).toEqual([]);
  });
});

import { responsesRequest } from '../../../../src/features/openai/responses-input.js';
import { parseResponses } from '../../../../src/features/openai/responses-request.js';
import type { ContinuedText } from '../../../../src/shared/job.js';
import { pdfOf } from '../../../support/basics/pdf.js';
import { always, sdkDoor } from '../../../support/doors/sdk-door.js';
import { assistant, plainJob, png, pngAt, system, user } from '../../../support/doors/sdk-messages.js';
import { headOf } from '../../../support/stores/response-store-contract.js';

const image = { type: 'input_image', detail: 'auto', image_url: `data:image/png;base64,${png}` };
const inputText = (text: unknown) => ({ type: 'input_text', text });
const hi = user('Hi');
const parameters = { type: 'object', properties: { city: { type: 'string' } } };
const weather = { type: 'function', name: 'weather', description: 'of a city', parameters, strict: false };
const time = { type: 'function', name: 'time' };
const weatherTool = { name: 'weather', description: 'of a city', schema: JSON.stringify(parameters) };
const call = { type: 'function_call', call_id: 'a', name: 'weather', arguments: '{}' };
const runCall = { type: 'custom_tool_call', call_id: 'b', name: 'run', input: 'ls' };
const result = (output: unknown) => ({ type: 'function_call_output', call_id: 'a', output });
const runResult = { type: 'custom_tool_call_output', call_id: 'b', output: [inputText('a.txt'), image] };
const run = { type: 'custom', name: 'run' };
const moreTools = { type: 'additional_tools', role: 'developer', id: 'at_1' };
const format = { type: 'json_schema', name: 'a', strict: true, schema: parameters };

const wishFields = { temperature: 'temperature', topP: 'top_p' };

function asked(body: object) {
  return parseResponses(responsesRequest.parse({ model: 'eliza', input: 'Hi', ...body }));
}

function parsedAfter(body: object, earlier: ContinuedText) {
  return parseResponses(responsesRequest.parse({ model: 'eliza', ...body }), earlier);
}

const pdfData = pdfOf({ pages: 2 }).toString('base64');
const file = { type: 'input_file', filename: 'a.pdf', file_data: `data:application/pdf;base64,${pdfData}` };
const pdf = { mediaType: 'application/pdf', data: pdfData, name: 'a.pdf', form: 'base64', at: 1 };

describe('A response asks for', () => {
  it('one answer to a text', () => {
    expect(asked({})).toEqual({
      job: plainJob(),
      model: 'eliza',
      forms: {},
      droppedTools: [],
      wishFields: { ...wishFields, maxTokens: 'max_output_tokens', isParallel: 'parallel_tool_calls' },
      ignored: [],
      effortField: 'reasoning.effort',
      imageField: null,
      documentField: null,
      schemaWish: null,
    });
  });

  it('an answer that continues a stored text, with results for its open calls', () => {
    const earlier = { ...headOf('one'), openCalls: [{ id: 'a', name: 'weather', input: '' }] };
    const withTools = parsedAfter({ input: [result('Rain')], tools: [weather] }, earlier);
    expect(withTools).toMatchObject({ job: { history: [], earlier, text: '', results: [{ id: 'a', text: 'Rain' }] } });
    expect(() => parsedAfter({ input: 'So?', tools: [weather] }, earlier)).toThrow('missing for a');
    expect(parsedAfter({ input: 'So?' }, earlier).job).toMatchObject({ history: [], earlier, text: 'So?' });
  });

  it('an answer after the results of calls, which are text if there are no tools', () => {
    const { job, imageField, ignored } = asked({ input: [hi, call, runCall, result('Rain'), runResult] });
    expect(job).toMatchObject({
      history: [
        { role: 'user', text: 'Hi' },
        { role: 'assistant', text: '{}\n\nls' },
      ],
      text: 'Result of weather:\n\nRain\n\nResult of run:\n\na.txt',
      images: pngAt(47),
    });
    expect([imageField, ignored]).toEqual(['input.4.output.1', ['input.output.detail']]);
  });

  it('an answer after calls and results with their ids, if it has tools', () => {
    const inCrm = { ...call, name: 'time', namespace: 'crm' };
    const input = [hi, inCrm, runCall, result('Noon'), runResult];
    const calls = [
      { id: 'a', name: 'crm__time', input: '{}' },
      { id: 'b', name: 'run', input: '{"input":"ls"}' },
    ];
    expect(asked({ input, tools: [weather] }).job).toMatchObject({
      history: [
        { role: 'user', text: 'Hi' },
        { role: 'assistant', text: '', calls },
      ],
      text: '',
      results: [
        { id: 'a', text: 'Noon' },
        { id: 'b', text: 'a.txt', images: pngAt(5) },
      ],
    });
  });

  it('one answer to the last of several items', () => {
    const answer = [{ type: 'output_text', text: 'b', annotations: [] }];
    const input = [
      system('Be kind.'),
      { type: 'message', ...user([inputText('a')]) },
      { type: 'reasoning', id: 'rs_1', summary: [] },
      { type: 'message', id: 'msg_1', status: 'completed', ...assistant(answer) },
      { role: 'developer', content: [inputText('Be quick.')] },
      user('c'),
      { ...call, arguments: '{"city":"Ulm"}' },
      user([inputText('see'), image]),
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
      images: pngAt(3),
    });
  });

  const schemaAt = (path: string, value: object = parameters) => ({ schema: { path, value } });

  it.each<[object, object, string[]]>([
    [{ stream: true, instructions: null, previous_response_id: null, background: false }, { stream: true }, []],
    [{ temperature: 1, max_output_tokens: 5 }, { sampling: { temperature: 1, maxTokens: 5 } }, []],
    [{ store: true, include: [] }, {}, ['include']],
    [{ text: { format: { type: 'text' }, verbosity: 'low' } }, { schema: undefined }, ['text.verbosity']],
    [
      { text: { format: { type: 'json_object' } } },
      { ...schemaAt('text.format', { type: 'object' }), schemaWish: expect.stringContaining('text.format') },
      [],
    ],
    [{ text: { format } }, schemaAt('text.format.schema'), []],
    [
      { text: { format: { ...format, description: 'x' } } },
      schemaAt('text.format.schema'),
      ['text.format.description'],
    ],
    [{ text: { format: { type: 'text', schema: {} } } }, { schema: undefined }, ['text.format.schema']],
    [
      { text: { format: { type: 'json_object', schema: parameters } } },
      { ...schemaAt('text.format.schema'), schemaWish: null },
      [],
    ],
    [{ input: [{ ...hi, phase: 'x' }] }, {}, ['input.phase']],
    [{ input: [user([inputText('a'), image])] }, { imageField: 'input.0.content.1' }, ['input.content.detail']],
    [{ input: [user([inputText('a'), file])] }, { documentField: 'input.0.content.1', images: [pdf] }, []],
    [{ input: [user([inputText('a'), { ...file, file_data: pdfData }])] }, { images: [pdf] }, []],
    [
      { input: [user([inputText('a'), { ...file, file_data: 'SGk=' }])] },
      { images: [{ mediaType: 'text/plain' }] },
      [],
    ],
    [{ reasoning: { effort: 'high', summary: 'auto' } }, { effort: 'high', thinking: 'summarized' }, []],
    [{ reasoning: { effort: 'high' } }, { effort: 'high', thinking: 'omitted' }, []],
    [{ reasoning: { summary: 'concise' } }, { effort: undefined, thinking: 'summarized' }, []],
    [{ reasoning: { summary: 'none' } }, { effort: undefined, thinking: undefined }, []],
    [{ reasoning: { effort: 'none' } }, { effort: undefined }, ['reasoning.effort']],
    [
      { tools: [weather, time], tool_choice: 'auto' },
      { offer: { tools: [weatherTool, { name: 'time' }], choice: 'auto', isParallel: true } },
      [],
    ],
    [
      { tools: [{ ...weather, strict: true }, { type: 'web_search' }], tool_choice: 'required' },
      { offer: { tools: [{ ...weatherTool, isStrict: true }], choice: 'required' }, droppedTools: ['web_search'] },
      ['tools.web_search'],
    ],
    [
      { tools: [time, weather], tool_choice: { type: 'function', name: 'weather' }, text: { format } },
      { offer: { choice: { name: 'weather' } }, schema: { value: parameters } },
      [],
    ],
    [
      {
        tools: [{ type: 'namespace', name: 'crm', tools: [time] }, run],
        ...{ tool_choice: { ...time, namespace: 'crm' }, parallel_tool_calls: false },
      },
      {
        offer: { tools: [{ name: 'crm__time' }, { name: 'run' }], choice: { name: 'crm__time' }, isParallel: false },
        forms: { crm__time: { isCustom: false, name: 'time', namespace: 'crm' }, run: { isCustom: true, name: 'run' } },
      },
      [],
    ],
    [
      {
        input: [{ ...moreTools, tools: [{ type: 'namespace', name: 'functions', tools: [run] }] }, hi],
        ...{ tools: [time], tool_choice: 'auto' },
      },
      {
        ...{ text: 'Hi', system: undefined, offer: { tools: [{ name: 'time' }, { name: 'functions__run' }] } },
        forms: { functions__run: { isCustom: true, name: 'run', namespace: 'functions' } },
      },
      [],
    ],
    [
      {
        tools: [
          { ...run, format: { type: 'grammar' } },
          { type: 'custom', name: 'say', format: { type: 'text' } },
          { type: 'namespace', name: 'crm', tools: [{ ...time, defer_loading: true }] },
        ],
      },
      { offer: { tools: [{ name: 'run' }, { name: 'say' }, { name: 'crm__time' }] } },
      ['tools.format', 'tools.tools.defer_loading'],
    ],
    [{ tool_choice: 'auto', parallel_tool_calls: true }, {}, ['tool_choice', 'parallel_tool_calls']],
  ])('the options of %j', (body, expected, ignored) => {
    const { job, ...rest } = asked(body);
    expect({ ...job, ...rest }).toMatchObject({ ...expected, ignored });
  });
});

const items = (...input: readonly unknown[]) => ({ input });
const asks = (content: unknown) => items(user(content));
const [part, imageUrl] = ['input[0].content[0].type', 'input[0].content[0].image_url'];

describe('A response is rejected, with the field named,', () => {
  it.each<[object, string, string]>([
    [{ input: undefined }, 'input', 'must be text, or a list of items'],
    [
      items({ ...moreTools, tools: [{ ...time, name: 'a b' }] }, hi),
      'input[0].tools[0].name',
      'must be 1 to 128 letters',
    ],
    [{ input: 5 }, 'input', 'must be text, or a list of items'],
    [{ input: '' }, 'input', 'must end with a message that has text'],
    [items(), 'input', 'must contain a message of the user'],
    [items(hi, assistant('So')), 'input', 'must end with a message of the user'],
    [items({ role: 'bot', content: 'x' }), 'input[0].role', 'must be system, developer, user or assistant'],
    [items({ content: 'x' }), 'input[0].role', 'must be system, developer, user or assistant'],
    [items({ role: 'user' }), 'input[0].content', 'must be sent'],
    [items(system([image]), hi), part, 'must be one of input_text'],
    [items({ type: 'item_reference', id: 'msg_1' }, hi), 'input[0].id', 'of a stored response'],
    [items(hi, { type: 'computer_call_output' }), 'input[1].type', 'must be message'],
    [items({ type: 'function_call', arguments: 5 }, hi), 'input[0].arguments', 'must be a string'],
    [asks([{ type: 'input_file', file_url: 'http://x' }]), `input[0].content[0].file_url`, 'does not fetch files'],
    [asks([{ type: 'input_file', filename: 'a.pdf' }]), `input[0].content[0].file_data`, 'must be sent'],
    [asks([{ type: 'input_image' }]), imageUrl, 'must be sent as a data URL'],
    [asks([{ ...image, image_url: 'https://example.com' }]), imageUrl, 'images are not fetched'],
    [asks([inputText(null)]), 'input[0].content[0].text', 'must be a string'],
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
      { text: { format: { ...format, schema: { type: 'array' } } } },
      'text.format.schema',
      'must have an object at its',
    ],
    [{ reasoning: { effort: 5 } }, 'reasoning.effort', 'must be a string'],
    [{ tools: [{ type: 'function' }] }, 'tools[0].name', 'must be sent'],
    [{ tools: [{ type: 'code_interpreter' }], tool_choice: 'required' }, 'tools', 'code_interpreter can only run on'],
    [
      { tools: [weather], tool_choice: { type: 'code_interpreter' } },
      'tool_choice',
      'must be none, auto, required, one func',
    ],
    [{ tools: [weather], tool_choice: { type: 'web_search' } }, 'tool_choice', 'must name one of the tools'],
  ])('%j', async (body, param, message) => {
    await using door = await sdkDoor(always());
    const answer = await door.post('/v1/responses', { model: 'eliza', input: 'Hi', ...body });
    const error = { type: 'invalid_request_error', code: 'validation_error', param };
    const text = expect.stringContaining(message);
    expect(answer).toMatchObject({ status: 400, body: { error: { ...error, message: text } } });
    expect(door.primary.calls).toEqual([]);
  });
});

import { pixel } from '../../support/clients/sdk-lab.js';
import { metric } from '../../support/documents/exposition.js';
import { type Answer, type Service, startService } from '../../support/service/service.js';

const [completions, responses, messages] = ['/v1/chat/completions', '/v1/responses', '/v1/messages'] as const;
const doors = [completions, responses, messages];
const hi = { role: 'user', content: 'Hi' };
const parameters = { type: 'object', properties: { city: { type: 'string' } } };
const weather = { name: 'weather', description: 'of a city', parameters };
const [, data] = pixel.split(',');

const ulm = '{"city":"Ulm"}';

/** Service that answers with its whole input, or, as the model `obeys`, with a value, or, as `chats`, with prose. */
let service: Service;

beforeAll(async () => {
  const says = (text: string) => `command:sh -c 'cat >/dev/null; echo "$0"' '${text}'`;
  const clis = `cat=command:cat,obeys=${says(ulm)},chats=${says('In Ulm')}`;
  const env = { MODEL_API_CLI: 'auto', MODEL_API_CLIS: clis, MODEL_API_LOCAL_USERS: 'off' };
  service = await startService({ env });
});
afterAll(async () => {
  await service.stop();
});

function post(path: string, body: object): Promise<Answer> {
  return service.post(path, { model: 'default', ...body });
}

function ignoredBy({ headers }: Answer): string | null {
  return headers.get('x-ignored-parameters');
}

describe('An image for a model CLI without image support', () => {
  const image = { type: 'image_url', image_url: { url: pixel } };
  const source = { type: 'base64', media_type: 'image/png', data };
  const said = (content: unknown) => [hi, { role: 'assistant', content: 'Hello' }, { role: 'user', content }];
  const text = { type: 'text', text: 'Who is it?' };

  it.each<[string, object, string, string | undefined]>([
    [completions, { messages: said([text, image]) }, 'messages.2.content.1', 'messages[2].content[1]'],
    [completions, { messages: said([text, image]), stream: true }, 'messages.2.content.1', 'messages[2].content[1]'],
    [
      completions,
      { messages: [{ role: 'user', content: [image] }, ...said('So?')] },
      'messages.0.content.0',
      'messages[0].content[0]',
    ],
    [
      responses,
      { input: [{ role: 'user', content: [{ type: 'input_image', image_url: pixel }] }] },
      'input.0.content.0',
      'input[0].content[0]',
    ],
    [
      responses,
      { input: [{ role: 'user', content: [{ type: 'input_image', image_url: pixel }] }], background: true },
      'input.0.content.0',
      'input[0].content[0]',
    ],
    [messages, { messages: said([text, { type: 'image', source }]), max_tokens: 9 }, 'messages.2.content.1', undefined],
  ])('is rejected with the path of the field in the request: %s', async (path, body, field, param) => {
    const { status, body: refusal } = await post(path, body);
    const message = `${field}: the model CLI of this service does not accept images`;
    expect([status, refusal.error]).toMatchObject([400, { type: 'invalid_request_error', message }]);
    expect((refusal.error as { param?: string }).param).toBe(param);
  });

  it('is rejected by the native API too', async () => {
    const { status, body } = await post('/ask', { prompt: 'Who?', images: [{ media_type: 'image/png', data }] });
    expect([status, body.details]).toEqual([
      400,
      [{ path: 'images', message: 'the model CLI of this service takes none' }],
    ]);
  });
});

describe('The result of a tool call', () => {
  const call = { id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"city":"Ulm"}' } };

  it.each<[string, object]>([
    [
      completions,
      {
        messages: [
          hi,
          { role: 'assistant', content: null, tool_calls: [call] },
          { role: 'tool', tool_call_id: 'c1', content: 'Rain' },
        ],
      },
    ],
    [
      completions,
      {
        messages: [
          hi,
          { role: 'assistant', content: null, function_call: call.function },
          { role: 'function', name: 'weather', content: 'Rain' },
        ],
      },
    ],
    [
      responses,
      {
        input: [
          hi,
          { type: 'function_call', call_id: 'c1', ...call.function },
          { type: 'function_call_output', call_id: 'c1', output: 'Rain' },
        ],
      },
    ],
    [
      messages,
      {
        max_tokens: 9,
        messages: [
          hi,
          { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'weather', input: { city: 'Ulm' } }] },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'Rain' }] },
        ],
      },
    ],
  ])('reaches the model as text if the request has no tools: %s', async (path, body) => {
    const { status, text } = await post(path, body);
    const told = JSON.parse(`"${/A conversation follows.*?the answer alone\./.exec(text)?.[0]}"`) as string;
    expect([
      status,
      told
        .replaceAll(/turn-\d+/g, 'turn')
        .split('\n')
        .slice(2),
    ]).toEqual([
      200,
      [
        ...['[turn user]', 'Hi', '', '[turn assistant]', '{"city":"Ulm"}', ''],
        ...['[turn user]', 'Result of weather:', '', 'Rain', ''],
        '[turn end] Answer the last message as the assistant, with the answer alone.',
      ],
    ]);
  });
});

describe('The schema of an answer', () => {
  const schema = { type: 'object', properties: { city: { const: 'Ulm' } }, required: ['city'] };

  it.each([
    { response_format: { type: 'json_object', schema } },
    { response_format: { type: 'json_schema', json_schema: { name: 'a', schema } } },
    { guided_json: schema },
    { guided_json: JSON.stringify(schema) },
  ])('is found in each supported field: %j', async (format) => {
    const body = { model: 'obeys', messages: [hi], ...format };
    const fits = await post(completions, body);
    expect([ignoredBy(fits), fits.body.choices]).toMatchObject([null, [{ message: { content: ulm } }]]);
    const other = JSON.parse(JSON.stringify(body).replaceAll('Ulm', 'Bonn')) as object;
    expect((await post(completions, other)).body.error).toMatchObject({
      code: 'schema_mismatch',
      message: expect.not.stringContaining('json_object'),
    });
  });

  it.each([
    [
      completions,
      { model: 'chats', messages: [hi], response_format: { type: 'json_object' } },
      /response_format: \{"type": "json_schema"/,
    ],
    [
      responses,
      { model: 'chats', input: 'Hi', text: { format: { type: 'json_object' } } },
      /text\.format: \{"type": "json_schema"/,
    ],
  ])('may be missing, and then a failure explains how to send one: %s', async (path, body, wish) => {
    const { status, body: failure } = await post(path, body);
    expect([status, failure.error]).toMatchObject([
      500,
      { code: 'schema_mismatch', message: expect.stringMatching(wish) },
    ]);
    expect((failure.error as { message: string }).message).toMatch(/json_object does not describe the object/);
    const streamed = await post(path, { ...body, stream: true });
    expect(streamed.text).toMatch(/"message":"the answer of the model [^\n]*json_object does not describe/);
  });

  it('can come from a legacy function, and the answer is a legacy function call', async () => {
    const asked = { model: 'obeys', messages: [hi], functions: [weather], function_call: { name: 'weather' } };
    const { body } = await post(completions, asked);
    const called = { name: 'weather', arguments: ulm };
    expect(body.choices).toMatchObject([
      { message: { content: null, function_call: called }, finish_reason: 'function_call' },
    ]);
    expect(JSON.stringify(body)).not.toContain('tool_calls');
    const { text } = await post(completions, { ...asked, stream: true });
    const chunks = [...text.matchAll(/^data: (\{.*\})$/gm)].map(([, json = '']) => JSON.parse(json).choices[0]);
    const calls = chunks.flatMap(({ delta }) => delta.function_call ?? []);
    expect([calls[0].name, calls.map((each) => each.arguments).join('')]).toEqual(['weather', ulm]);
    expect(chunks.at(-1).finish_reason).toBe('function_call');
  });
});

describe('Provider-hosted tools', () => {
  const ofWeather = { type: 'function', function: weather };
  const none = { tool_choice: 'none' };
  const offers: readonly [string, object, string][] = [
    [completions, { messages: [hi], tools: [ofWeather, { type: 'web_search' }], ...none }, 'tools.web_search'],
    [completions, { messages: [hi], tools: [ofWeather, { type: 'mcp' }], ...none }, 'tools.mcp'],
    [responses, { input: 'Hi', tools: [{ type: 'web_search' }], ...none }, 'tools.web_search, tool_choice'],
    [
      messages,
      {
        ...{ messages: [hi], max_tokens: 9, tool_choice: { type: 'none' } },
        tools: [
          { name: 'weather', input_schema: parameters },
          { type: 'web_search_20250305', name: 'web_search' },
        ],
      },
      'tools.web_search_20250305, max_tokens',
    ],
  ];
  const count = (route: string) => metric(service, `tools_ignored_total{route="${route}"}`);

  it('are listed as ignored in the answer, counted per API, and logged once per client', async () => {
    const before = await Promise.all(doors.map(count));
    for (const [path, body, ignored] of offers)
      expect([path, ignoredBy(await post(path, body))]).toEqual([path, ignored]);
    await post(completions, { messages: [hi], tools: [ofWeather], ...none });
    await post(completions, { messages: [hi], tools: [] });
    const after = await Promise.all(doors.map(count));
    expect(after.map((sum, at) => sum - (before[at] ?? 0))).toEqual([2, 1, 1]);
    await service.log('tools_ignored');
    const told = service.logs.filter(({ event }) => event === 'tools_ignored');
    expect(told).toMatchObject([{ level: 'warn', client: 'address 127.0.0.1', path: completions }]);
  });

  it('are rejected if the request has no other tools', async () => {
    const { status, text } = await post(completions, { messages: [hi], tools: [{ type: 'web_search' }] });
    expect([status, text]).toEqual([400, expect.stringContaining('MODEL_API_SEARCH=off')]);
  });
});

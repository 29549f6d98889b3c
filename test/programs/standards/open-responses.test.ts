import { pixel } from '../../support/clients/sdk-lab.js';
import { type Service, startService } from '../../support/service/service.js';
import { event, response } from './response-schema.js';

/**
 * No registry has the acceptance tests of Open Responses. These are their cases over HTTP, rewritten from the
 * specification, with prompts that the demo model understands.
 */
let service: Service;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

const said = (role: string, content: unknown) => ({ type: 'message', role, content });
const location = { type: 'object', properties: { location: { type: 'string' } }, required: ['location'] };
const weather = { type: 'function', name: 'get_weather', description: 'The weather at a place', parameters: location };
const ordered = 'call get_weather {"location":"San Francisco"}';

/** Request of each case, and the type of an item that the response must contain. */
const cases: readonly (readonly [
  name: string,
  body: { readonly stream?: true; readonly [field: string]: unknown },
  item: string,
])[] = [
  ['a plain text', { input: [said('user', 'Say hello.')] }, 'message'],
  ['a stream', { stream: true, input: [said('user', 'Count from 1 to 5.')] }, 'message'],
  ['a system message', { input: [said('system', 'You are a pirate.'), said('user', 'Say hello.')] }, 'message'],
  ['a tool', { tools: [weather], input: [said('user', ordered)] }, 'function_call'],
  ['a tool in a stream', { stream: true, tools: [weather], input: [said('user', ordered)] }, 'function_call'],
  [
    'an image',
    {
      input: [
        said('user', [
          { type: 'input_text', text: 'What do you see?' },
          { type: 'input_image', image_url: pixel },
        ]),
      ],
    },
    'message',
  ],
  [
    'several turns',
    { input: [said('user', 'My name is Alice.'), said('assistant', 'Hello Alice!'), said('user', 'What is my name?')] },
    'message',
  ],
  [
    'a schema',
    { input: 'Where?', text: { format: { type: 'json_schema', name: 'place', schema: location } } },
    'message',
  ],
  [
    'settings',
    { input: 'Hello', tools: [weather], tool_choice: 'none', metadata: { ticket: '7' }, reasoning: { effort: 'low' } },
    'message',
  ],
];

describe('By the Open Responses specification', () => {
  it.each(cases)('the service answers %s', async (_, body, item) => {
    const { status, text } = await service.post('/v1/responses', { model: 'default', ...body });
    expect(status).toBe(200);
    const answer = response.parse(body.stream ? lastOf(text) : JSON.parse(text));
    expect(answer.status).toBe('completed');
    expect(answer.output.map(({ type }) => type)).toContain(item);
    expect(answer.completed_at).toBeGreaterThanOrEqual(answer.created_at);
    if (item === 'function_call' && body.stream) expect(text).toContain('response.function_call_arguments.delta');
  });
});

/** Checks that every event matches its schema and is numbered. Returns the response in the last event. */
function lastOf(text: string): unknown {
  const sent = [...text.matchAll(/^event: (\S+)\ndata: (.*)$/gm)].map(([, name, data = '']) => {
    const content = event.parse(JSON.parse(data));
    expect(content.type).toBe(name);
    return content;
  });
  expect(sent.map(({ sequence_number }) => sequence_number)).toEqual(sent.map((_, index) => index));
  return (sent.at(-1) as { response?: unknown }).response;
}

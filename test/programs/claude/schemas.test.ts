import { installClaude, startWithClaude } from '../../support/agents/claude-service.js';
import {
  type MessagesApi,
  type MessagesRequest,
  says,
  saysAndCalls,
  saysAndGives,
  startMessagesApi,
} from '../../support/agents/messages-api-stub.js';
import { lossySchemas, oddSchemas } from '../../support/doors/odd-schemas.js';
import type { Service } from '../../support/service/service.js';

const model = 'claude-sonnet-5';
const oddTools = [...oddSchemas, ...lossySchemas].map(({ schema, value }, at) => ({
  name: `tool_${100 + at}`,
  schema,
  value,
}));
const longNames = [65, 100, 128].map((length) => `${length}_`.padEnd(length, 'n'));

let api: MessagesApi;
let service: Service;

beforeAll(async () => {
  await installClaude();
  api = await startMessagesApi();
  service = await startWithClaude(api, { env: { MODEL_API_LIVE_SESSIONS: '4' } });
}, 600_000);
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  await api.close();
});
beforeEach(() => {
  api.requests.length = 0;
});

interface SentTool {
  readonly name: string;
  readonly input_schema: {
    readonly properties?: Readonly<Record<string, unknown>>;
    readonly [keyword: string]: unknown;
  };
}

function toolsOf({ body }: MessagesRequest): readonly SentTool[] {
  return (body.tools ?? []) as readonly SentTool[];
}

/** Whether the input of the tool is wrapped in one property. */
function isWrapped({ input_schema: { properties = {} } }: SentTool): boolean {
  return Object.keys(properties).join() === 'input';
}

/** Returns the parts at the top of a schema that the vendor's API rejects. */
function refusedParts({ input_schema: schema }: SentTool): string[] {
  const keys = Object.keys(schema.properties ?? {}).filter((key) => !/^[a-zA-Z0-9_.-]{1,64}$/.test(key));
  return [...keys, ...['anyOf', 'oneOf', 'allOf'].filter((word) => word in schema)];
}

function resultsIn({ body }: MessagesRequest): number {
  return JSON.stringify(body.messages).split('"tool_result"').length - 1;
}

describe('Client tools with the real claude', () => {
  it('may have unusual schemas: the model receives each tool, and each call matches its schema', async () => {
    api.behave = (request) => {
      if (resultsIn(request) > 0) return says('done');
      const calls = toolsOf(request).map((tool) => {
        const value = oddTools.find(({ name }) => name === tool.name)?.value ?? {};
        return { name: tool.name, input: isWrapped(tool) ? { input: value } : value };
      });
      return saysAndCalls('', ...calls);
    };
    const tools = oddTools.map(({ name, schema }) => ({ name, input_schema: schema }));
    const question = { role: 'user', content: 'Call all.' };
    const { body } = await service.post('/v1/messages', { model, max_tokens: 100, tools, messages: [question] });
    const blocks = body.content as readonly { type: string; id: string; name: string; input: unknown }[];
    expect(blocks.map(({ name, input }) => [name, input])).toEqual(oddTools.map(({ name, value }) => [name, value]));
    expect(toolsOf(api.requests[0] as MessagesRequest).flatMap(refusedParts)).toEqual([]);

    // A new process receives the history in the same form as the first one.
    const content = blocks.map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: 'ok' }));
    const messages = [
      { role: 'user', content: 'Call all!' },
      { role: 'assistant', content: blocks },
      { role: 'user', content },
    ];
    const second = await service.post('/v1/messages', { model, max_tokens: 100, tools, messages });
    expect(second.body.content).toMatchObject([{ type: 'text', text: 'done' }]);
    const replayed = JSON.stringify(api.requests.at(-1)?.body.messages);
    for (const { value } of oddTools) expect(replayed).toContain(JSON.stringify(value));
    expect(replayed).toContain('"input":{"input":{"$filter"');
  });

  it.each(longNames)('may have the long name %s', async (name) => {
    api.behave = (request) =>
      resultsIn(request) > 0
        ? says('done')
        : saysAndCalls('', { name: toolsOf(request)[0]?.name ?? '', input: { a: 1 } });
    const tools = [{ name, input_schema: { type: 'object' } }];
    const choice = { tool_choice: { type: 'tool', name } };
    const question = { role: 'user', content: name };
    const { body } = await service.post('/v1/messages', {
      model,
      max_tokens: 9,
      tools,
      messages: [question],
      ...choice,
    });
    const [call] = body.content as readonly { id: string }[];
    expect(call).toMatchObject({ type: 'tool_use', name, input: { a: 1 } });
    const [sent] = toolsOf(api.requests[0] as MessagesRequest);
    expect(sent?.name.length).toBeLessThanOrEqual(64);
    expect(api.requests[0]?.body.tool_choice).toMatchObject({ name: sent?.name });
    const content = [{ type: 'tool_result', tool_use_id: call?.id, content: 'ok' }];
    const messages = [question, { role: 'assistant', content: [call] }, { role: 'user', content }];
    const second = await service.post('/v1/messages', { model, max_tokens: 9, tools, messages });
    expect(second.body.content).toMatchObject([{ type: 'text', text: 'done' }]);
  });
});

describe('An answer of the real claude', () => {
  it.each(oddSchemas)('can match a schema with $title', async ({ schema, value }) => {
    api.behave = (request) => {
      const tool = toolsOf(request).find(({ name }) => name === 'StructuredOutput');
      if (tool === undefined) return says('no schema has arrived');
      expect(refusedParts(tool)).toEqual([]);
      return saysAndGives('', isWrapped(tool) ? { input: value } : value);
    };
    const { status, body } = await service.post('/ask', { prompt: 'Give a value.', schema });
    expect([status, body]).toMatchObject([200, { structured: value }]);
  });

  it.each(lossySchemas)(
    'is rejected with the keyword that the schema cannot express: $title',
    async ({ schema, title }) => {
      const { status, body } = await service.post('/ask', { prompt: 'Give a value.', schema });
      expect([status, body]).toMatchObject([400, { details: [{ message: expect.stringContaining(title) }] }]);
    },
  );
});

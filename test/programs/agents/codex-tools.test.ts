import { codexVersion, installCodex, startWithCodex } from '../../support/agents/codex-service.js';
import {
  calls,
  messagesOf,
  type ResponsesApi,
  type ResponsesRequest,
  responds,
  startResponsesApi,
} from '../../support/agents/responses-api-stub.js';
import { shared } from '../../support/basics/shared.js';
import { note, ToolClient } from '../../support/clients/tool-client.js';

const live = { MODEL_API_WORKERS: '1', MODEL_API_LIVE_SESSIONS: '4' };

let api: ResponsesApi;

beforeAll(async () => {
  api = await startResponsesApi();
});
beforeEach(() => {
  api.requests.length = 0;
});
afterAll(() => api.close());

/** Returns the calls and their results as the API receives them. */
function itemsOf({ body }: ResponsesRequest): readonly object[] {
  return body.input.flatMap((item): readonly object[] => {
    const { type, call_id: id, name, arguments: input, output } = item as unknown as Record<string, unknown>;
    if (type === 'function_call') return [{ id, name, input }];
    return type === 'function_call_output' ? [{ id, output }] : [];
  });
}

/** Returns the tools of a request. Their place in it depends on the model. */
function toolsOf({ body }: ResponsesRequest): readonly Record<string, unknown>[] {
  const listed = [...(body.tools ?? []), ...body.input.flatMap(({ tools = [] }) => tools)] as Record<string, unknown>[];
  return listed.flatMap((tool) => (Array.isArray(tool.tools) ? (tool.tools as Record<string, unknown>[]) : [tool]));
}

const twoCalls = calls(
  { id: 'call_A', name: 'note', input: '{"who":"Ann"}' },
  { id: 'call_B', name: 'note', input: '{"who":"Bo"}' },
);
const heard = [
  { id: 'call_A', name: 'note', input: '{"who":"Ann"}' },
  { id: 'call_B', name: 'note', input: '{"who":"Bo"}' },
];

/** A codex that places the tools of a client elsewhere in its requests. */
const older = '0.160.1';

describe.each([codexVersion, older])('Client tools with the real codex %s', (version) => {
  beforeAll(() => installCodex(version), 600_000);
  const start = shared(async () => {
    const command = `'${await installCodex(version)}'`;
    return startWithCodex(api, { env: { ...live, MODEL_API_CLI_COMMAND: command } });
  });

  it('blocks all calls of a message until the client has sent their results, in any order', async () => {
    const service = await start();
    const client = new ToolClient(service, 'any', { model: 'gpt-5.5' });
    api.behave = (_, index) =>
      [twoCalls, calls({ id: 'call_C', name: 'note', input: '{}' })][index] ?? responds('All noted.');
    const first = await client.say('Note Ann and Bo.');
    expect(first.calls.map(({ id }) => id)).toEqual(['call_A', 'call_B']);
    expect(toolsOf(api.requests[0] as ResponsesRequest).map(({ name }) => name)).toEqual(['note']);
    const second = await client.send(
      ['call_B', 'call_A'].map((id) => ({ role: 'tool', tool_call_id: id, content: `done ${id}` })),
    );
    expect([second.session, second.calls.length]).toEqual(['live', 1]);
    const third = await client.answer(() => 'done');
    expect([third.session, third.text]).toEqual(['live', 'All noted.']);
    const items = itemsOf(api.requests[1] as ResponsesRequest);
    expect(items).toEqual(
      expect.arrayContaining([
        ...heard,
        { id: 'call_A', output: 'done call_A' },
        { id: 'call_B', output: 'done call_B' },
      ]),
    );
    expect(items).toHaveLength(4);
    const fourth = await client.say('Thanks.');
    expect([fourth.session, fourth.text]).toEqual(['live', 'All noted.']);
  });

  it('offers tools with any name, and runs none of them', async () => {
    const service = await start();
    const names = [
      ...['Bash', 'Read', 'ToolSearch', 'StructuredOutput', 'shell', 'shell_command', 'local_shell', 'apply_patch'],
      ...['exec_command', 'write_stdin', 'update_plan', 'web_search', 'view_image', 'tool_search', 'wait', 'exec'],
      ...['request_user_input', 'spawn_agent', 'send_input', 'close_agent', 'list_mcp_resources', 'mcp__x__y', 'mcp'],
      ...['read_mcp_resource', 'request_permissions', 'image_generation', 'get_goal', 'new_context', 'sleep'],
    ];
    const tools = names.map((name) => ({ ...note, function: { ...note.function, name } }));
    const client = new ToolClient(service, 'any', { model: 'gpt-5.5', tools });
    api.behave = (request, index) => {
      const offered = toolsOf(request).map(({ name }) => String(name));
      if (index > 0) return responds('Enough.');
      return calls(...offered.map((name) => ({ id: `call_${name}`, name, input: '{"command":"touch canary"}' })));
    };
    const { calls: made } = await client.say('Use them all.');
    expect(made.map((call) => call.function.name).toSorted()).toEqual(names.toSorted());
    const { session, text } = await client.answer(() => 'no');
    expect([session, text]).toEqual(['live', 'Enough.']);
  });

  it('sends the whole schema in the description, because codex passes on only part of it', async () => {
    const service = await start();
    const parameters = { type: 'object', properties: { who: { type: 'string', pattern: '^[A-Z]' } } };
    const tools = [{ type: 'function', function: { name: 'note', description: 'Notes.', parameters } } as const];
    const client = new ToolClient(service, 'any', { model: 'gpt-5.5', tools });
    api.behave = () => responds('Yes.');
    await client.say('Hello.');
    const [tool] = toolsOf(api.requests[0] as ResponsesRequest);
    expect(tool?.description).toContain(JSON.stringify(parameters));
  });
});

describe('Client tools with the newest codex', () => {
  const start = shared(() => startWithCodex(api, { env: live }));

  it('replays the conversation word for word if no process waits', async () => {
    await using service = await startWithCodex(api, { env: { MODEL_API_WORKERS: '1' } });
    const client = new ToolClient(service, 'any', { model: 'gpt-5.5' });
    api.behave = (_, index) => (index === 0 ? twoCalls : responds('All noted.'));
    await client.say('Note Ann and Bo.');
    const { session, text } = await client.answer(({ id }) => `done ${id}`);
    expect([session, text]).toEqual(['replay', 'All noted.']);
    const last = api.requests.at(-1) as ResponsesRequest;
    const [first, second] = heard;
    expect(itemsOf(last)).toEqual([
      { ...first, id: 'toolu_replay_0' },
      { ...second, id: 'toolu_replay_1' },
      { id: 'toolu_replay_0', output: 'done call_A' },
      { id: 'toolu_replay_1', output: 'done call_B' },
    ]);
    expect(messagesOf(last).filter((message) => message.startsWith('user'))).toEqual(['user: Note Ann and Bo.']);
  });

  it.each(['none', 'required'] as const)(
    'continues without tools if tool_choice is %s in the middle of a loop, and with them afterwards',
    async (choice) => {
      const service = await start();
      const client = new ToolClient(service, 'any', { model: 'gpt-5.5' });
      const value = JSON.stringify({ kind: 'call', name: 'note', arguments: { who: 'Cy' } });
      api.behave = (_, index) =>
        [twoCalls, responds(choice === 'none' ? 'Noted.' : value), calls({ id: 'call_D', name: 'note', input: '{}' })][
          index
        ] ?? responds('All noted.');
      await client.say('Note Ann and Bo.');
      const second = await client.answer(({ id }) => `done ${id}`, { tool_choice: choice });
      expect([second.status, second.session]).toEqual([200, 'replay']);
      expect([second.text, second.calls.length]).toEqual(choice === 'none' ? ['Noted.', 0] : [null, 1]);
      expect(toolsOf(api.requests[1] as ResponsesRequest)).toEqual([]);
      expect(JSON.stringify(api.requests[1]?.body.input)).toContain('done call_B');
      const third = choice === 'none' ? await client.say('Note Di.') : await client.answer(() => 'done Cy');
      expect([third.status, third.calls.map(({ id }) => id)]).toEqual([200, ['call_D']]);
      expect(toolsOf(api.requests[2] as ResponsesRequest).map(({ name }) => name)).toEqual(['note']);
      expect(JSON.stringify(api.requests[2]?.body.input)).toContain(choice === 'none' ? 'Noted.' : 'done Cy');
      const fourth = await client.answer(() => 'done Di');
      expect([fourth.session, fourth.text]).toEqual(['live', 'All noted.']);
    },
  );

  it('passes a call of an unknown tool to the client as the API would, and then replays', async () => {
    const service = await start();
    const client = new ToolClient(service, 'any', { model: 'gpt-5.5' });
    api.behave = (_, index) => (index === 0 ? calls({ id: 'call_A', name: 'nope', input: '{}' }) : responds('I see.'));
    const { calls: made } = await client.say('Go.');
    expect(made.map((call) => call.function.name)).toEqual(['nope']);
    const { session, text } = await client.answer(() => 'There is no such tool.');
    expect([session, text]).toEqual(['replay', 'I see.']);
  });
});

import { until } from '../../support/basics/until.js';
import { note, orderFor } from '../../support/clients/tool-client.js';
import { type Service, startService } from '../../support/service/service.js';

let service: Service;

beforeAll(async () => {
  service = await startService({ env: { MODEL_API_LIVE_SESSIONS: '4' } });
});
afterAll(() => service.stop());

interface Sent {
  readonly id: string;
  readonly store: boolean;
  readonly previous_response_id: string | null;
  readonly output: readonly {
    readonly id: string;
    readonly type: string;
    readonly call_id?: string;
    readonly content?: readonly { readonly text: string }[];
  }[];
}

async function respond(input: unknown, more: object = {}) {
  const { status, body, headers } = await service.post('/v1/responses', { model: 'eliza', input, ...more });
  const sent = body as unknown as Sent;
  const text = sent.output?.flatMap(({ content = [] }) => content.map((part) => part.text)).join('');
  return { status, sent, text, session: headers.get('x-session') };
}

function following({ sent }: Awaited<ReturnType<typeof respond>>) {
  return { previous_response_id: sent.id };
}

it.each([
  ['compact', 'does not compact a conversation'],
  ['input_tokens', 'POST /v1/messages/count_tokens counts'],
])('The unsupported call %s is answered with the reason', async (name, reason) => {
  const { status, body } = await service.post(`/v1/responses/${name}`, { model: 'eliza', input: 'Hi' });
  expect(status).toBe(404);
  expect(body.error).toMatchObject({ code: 'not_found', message: expect.stringContaining(reason) });
});

describe('A stored response', () => {
  it('can be continued in its live process, and by two responses that share its text', async () => {
    const first = await respond('My name is Ada.');
    expect(first.sent).toMatchObject({ store: true, previous_response_id: null });
    const second = await respond('I like maps.', following(first));
    expect([second.session, second.sent.previous_response_id]).toEqual(['live', first.sent.id]);
    const third = await respond('What is my name?', following(second));
    expect([third.session, third.text]).toEqual(['live', 'Your name is Ada.']);
    const other = await respond('Who am I?', following(first));
    expect([other.session, other.text]).toEqual(['replay', 'Your name is Ada.']);
  });

  it('uses the instructions of each request only', async () => {
    const first = await respond('Who are you?', { instructions: 'You are Bert.' });
    expect(first.text).toContain('I am Bert');
    expect((await respond('Who are you?', following(first))).text).not.toContain('Bert');
  });

  it('can be read and deleted, and its successors remain', async () => {
    const first = await respond('My name is Ada.');
    const second = await respond('Hello', following(first));
    expect((await service.get(`/v1/responses/${first.sent.id}`)).body).toEqual(first.sent);
    const deleted = await service.fetch(`/v1/responses/${first.sent.id}`, { method: 'DELETE' });
    expect(await deleted.json()).toEqual({ id: first.sent.id, object: 'response', deleted: true });
    expect((await service.get(`/v1/responses/${first.sent.id}`)).status).toBe(404);
    expect((await respond('What is my name?', following(first))).status).toBe(404);
    expect((await respond('What is my name?', following(second))).text).toBe('Your name is Ada.');
  });

  it('has calls that the next request answers, and items that a request can reference', async () => {
    const tools = [{ type: 'function', ...note.function }];
    const first = await respond(orderFor('Ada'), { tools });
    const [call] = first.sent.output;
    const result = { type: 'function_call_output', call_id: call?.call_id, output: 'noted' };
    const second = await respond([result], { tools, ...following(first) });
    expect([second.session, second.text]).toEqual(['live', 'The result of note is: noted']);
    const asked = { role: 'user', content: orderFor('Ada') };
    const referred = await respond([asked, { type: 'item_reference', id: call?.id }, result], { tools });
    expect([referred.status, referred.text]).toEqual([200, 'The result of note is: noted']);
  });

  it('is the same when it is streamed', async () => {
    const response = await service.fetch('/v1/responses', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'eliza', input: 'My name is Ada.', stream: true }),
    });
    const last = /event: response\.completed\ndata: (.*)/.exec(await response.text())?.[1] ?? '';
    const { response: sent } = JSON.parse(last) as { response: Sent };
    expect(sent.store).toBe(true);
    expect((await respond('Who am I?', { previous_response_id: sent.id })).text).toBe('Your name is Ada.');
  });

  it('does not exist if the client opts out of storage, and is not found by an unknown id', async () => {
    const unstored = await respond('Hello', { store: false });
    expect(unstored.sent.store).toBe(false);
    for (const id of [unstored.sent.id, 'resp_of-nobody', 'odd']) {
      expect((await respond('Hello', { previous_response_id: id })).status).toBe(404);
      expect((await service.get(`/v1/responses/${id}`)).status).toBe(404);
    }
    expect((await respond([{ type: 'item_reference', id: 'msg_1' }])).status).toBe(400);
  });

  it('repeats the fields of its request, and lists unsupported fields as the API does', async () => {
    const said = {
      instructions: 'Be brief.',
      metadata: { ticket: '7' },
      tools: [{ type: 'function', ...note.function, strict: null }, { type: 'web_search' }],
      tool_choice: 'auto',
      temperature: 0.5,
      max_output_tokens: 100,
      user: 'ada',
      safety_identifier: 's',
      prompt_cache_key: 'k',
      text: { format: { type: 'json_object' } },
    };
    const repeated = { ...said, tools: [{ ...said.tools[0], description: null }], top_p: 1 };
    const first = await respond('Hello', said);
    expect(first.sent).toMatchObject(repeated);
    expect((await service.get(`/v1/responses/${first.sent.id}`)).body).toEqual(first.sent);
    const nothing = { presence_penalty: 0, frequency_penalty: 0, top_logprobs: 0, max_tool_calls: null };
    const plain = (await respond('Hello')).sent;
    expect(plain).toMatchObject({ ...nothing, temperature: 1, tools: [], service_tier: 'default', metadata: {} });
    expect(plain).not.toHaveProperty('user');
    const { created_at, completed_at } = plain as unknown as Record<string, number>;
    expect(completed_at).toBeGreaterThanOrEqual(created_at ?? Number.NaN);
    const long = { ...said, instructions: 'x'.repeat(300_000) };
    expect((await respond('Hello', long)).sent).toMatchObject({ ...repeated, instructions: null });
  });

  it('in the background repeats short fields, and its input is not stored', async () => {
    const said = { metadata: { ticket: '7' }, instructions: 'Be brief.' };
    const { sent } = await respond('Hello', { ...said, background: true });
    expect(sent).toMatchObject({ ...said, completed_at: null });
    const path = `/v1/responses/${sent.id}`;
    await until(async () => (await service.get(path)).body.status === 'completed', 'the response to be completed');
    expect((await service.get(path)).body).toMatchObject({ ...said, completed_at: expect.any(Number) });
    expect((await service.get(`${path}/input_items`)).status).toBe(404);
  });

  it('lists its input items, the last item first, page by page', async () => {
    const tools = [{ type: 'function', ...note.function }];
    const first = await respond('My name is Ada.');
    const second = await respond(orderFor('Ada'), { tools, ...following(first) });
    const [call] = second.sent.output;
    const result = { type: 'function_call_output', call_id: call?.call_id, output: 'noted' };
    const third = await respond([result, { role: 'user', content: 'Thanks' }], { tools, ...following(second) });
    const list = async (query: string) =>
      (await service.get(`/v1/responses/${third.sent.id}/input_items${query}`)).body;
    const all = (await list('?order=asc')) as { data: { id: string; type: string; role?: string }[] };
    expect(all).toMatchObject({ object: 'list', has_more: false, first_id: all.data[0]?.id, last_id: all.data[5]?.id });
    expect(all.data.map(({ type, role }) => role ?? type)).toEqual([
      ...['user', 'assistant', 'user', 'function_call', 'function_call_output', 'user'],
    ]);
    expect(all.data).toMatchObject([
      { content: [{ type: 'input_text', text: 'My name is Ada.' }] },
      { content: [{ type: 'output_text', text: first.text }] },
      { content: [{ type: 'input_text' }] },
      { call_id: call?.call_id, name: 'note', arguments: expect.any(String) },
      { call_id: call?.call_id, output: 'noted' },
      { content: [{ type: 'input_text', text: 'Thanks' }] },
    ]);
    for (const order of ['asc', 'desc']) {
      const seen: unknown[] = [];
      for (let after = ''; ; ) {
        const page = await list(`?limit=2&order=${order}${after}`);
        seen.push(...(page.data as unknown[]));
        if (page.has_more === false) break;
        after = `&after=${page.last_id}`;
      }
      expect(seen).toEqual(order === 'asc' ? all.data : all.data.toReversed());
    }
    expect(await list('')).toMatchObject({ data: all.data.toReversed(), has_more: false });
    for (const query of ['?limit=0', '?limit=101', '?order=up', '?after=msg_x_1_0', '?after='])
      expect((await service.get(`/v1/responses/${third.sent.id}/input_items${query}`)).status).toBe(400);
    expect((await service.get('/v1/responses/resp_of-nobody/input_items')).status).toBe(404);
  });

  it('is not listed as a conversation by GET /chat', async () => {
    expect((await service.get('/chat')).body).toMatchObject({ conversations: [] });
  });
});

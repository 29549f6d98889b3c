import { type Service, startService } from '../../support/service.js';
import { note, orderFor } from '../../support/tool-client.js';

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
])('The call %s, which this service lacks, is answered with the reason', async (name, reason) => {
  const { status, body } = await service.post(`/v1/responses/${name}`, { model: 'eliza', input: 'Hi' });
  expect(status).toBe(404);
  expect(body.error).toMatchObject({ code: 'not_found', message: expect.stringContaining(reason) });
});

describe('A stored response', () => {
  it('is gone on with, in the process that has it, and by two that share its text', async () => {
    const first = await respond('My name is Ada.');
    expect(first.sent).toMatchObject({ store: true, previous_response_id: null });
    const second = await respond('I like maps.', following(first));
    expect([second.session, second.sent.previous_response_id]).toEqual(['live', first.sent.id]);
    const third = await respond('What is my name?', following(second));
    expect([third.session, third.text]).toEqual(['live', 'Your name is Ada.']);
    const other = await respond('Who am I?', following(first));
    expect([other.session, other.text]).toEqual(['replay', 'Your name is Ada.']);
  });

  it('has its instructions from each request alone', async () => {
    const first = await respond('Who are you?', { instructions: 'You are Bert.' });
    expect(first.text).toContain('I am Bert');
    expect((await respond('Who are you?', following(first))).text).not.toContain('Bert');
  });

  it('can be read and deleted, and those that follow it stay', async () => {
    const first = await respond('My name is Ada.');
    const second = await respond('Hello', following(first));
    expect((await service.get(`/v1/responses/${first.sent.id}`)).body).toEqual(first.sent);
    const deleted = await fetch(`${service.url}/v1/responses/${first.sent.id}`, { method: 'DELETE' });
    expect(await deleted.json()).toEqual({ id: first.sent.id, object: 'response', deleted: true });
    expect((await service.get(`/v1/responses/${first.sent.id}`)).status).toBe(404);
    expect((await respond('What is my name?', following(first))).status).toBe(404);
    expect((await respond('What is my name?', following(second))).text).toBe('Your name is Ada.');
  });

  it('has calls that the next request answers, and items that can be referred to', async () => {
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

  it('is the same where it is streamed', async () => {
    const response = await fetch(`${service.url}/v1/responses`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'eliza', input: 'My name is Ada.', stream: true }),
    });
    const last = /event: response\.completed\ndata: (.*)/.exec(await response.text())?.[1] ?? '';
    const { response: sent } = JSON.parse(last) as { response: Sent };
    expect(sent.store).toBe(true);
    expect((await respond('Who am I?', { previous_response_id: sent.id })).text).toBe('Your name is Ada.');
  });

  it('is none where the client does not want it, nor one of another client', async () => {
    const unstored = await respond('Hello', { store: false });
    expect(unstored.sent.store).toBe(false);
    for (const id of [unstored.sent.id, 'resp_of-nobody', 'odd']) {
      expect((await respond('Hello', { previous_response_id: id })).status).toBe(404);
      expect((await service.get(`/v1/responses/${id}`)).status).toBe(404);
    }
    expect((await respond([{ type: 'item_reference', id: 'msg_1' }])).status).toBe(400);
  });

  it('is no conversation of GET /chat', async () => {
    expect((await service.get('/chat')).body).toMatchObject({ conversations: [] });
  });
});

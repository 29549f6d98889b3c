import { until } from '../../support/basics/until.js';
import { streamed } from '../../support/doors/sdk-door.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import { type Service, startService } from '../../support/service/service.js';

const key = 'a-key-of-some-length';
const introduction =
  'I am Eliza, a demo: a small program with a few fixed rules, not a language model. Hello. Nice to meet you, Ada.';
const hello = [{ role: 'user', content: 'Hello, my name is Ada' }];
const [completions, responses] = ['/v1/chat/completions', '/v1/responses'];

let service: Service;

beforeAll(async () => {
  service = await startService({ env: { MODEL_API_KEY: key, MODEL_API_LIVE_SESSIONS: '1' } });
});
afterAll(async () => {
  await service.stop();
});

/** Sends a request like OpenAI's SDKs. */
function ask(path: string, body: object, id = 'mine', signal: AbortSignal | null = null): Promise<Response> {
  return service.fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}`, 'x-request-id': id },
    body: JSON.stringify({ model: 'eliza', ...body }),
    signal,
  });
}

interface Completion {
  readonly choices: readonly { readonly message: { readonly role: string; readonly content: string } }[];
}

interface Responded {
  readonly output: readonly { readonly content: readonly { readonly text: string }[] }[];
}

describe('The APIs for OpenAI SDKs', () => {
  it('answer plainly', async () => {
    const completion = await (await ask(completions, { messages: hello })).json();
    const message = { role: 'assistant', content: introduction, refusal: null };
    expect(completion).toMatchObject({ id: 'chatcmpl-mine', choices: [{ message, finish_reason: 'stop' }] });
    const response = await (await ask(responses, { input: hello[0]?.content })).json();
    expect(response).toMatchObject({
      id: 'resp_mine',
      status: 'completed',
      output: [{ content: [{ text: introduction }] }],
    });
  });

  it('stream word by word', async () => {
    const wanted = { stream: true, stream_options: { include_usage: true } };
    const chunks = streamed(await (await ask(completions, { messages: hello, ...wanted })).text()) as Record<
      string,
      { delta?: { content?: string } }[]
    >[];
    expect(chunks.map(({ choices }) => choices?.[0]?.delta?.content ?? '').join('')).toBe(introduction);
    expect(chunks.slice(-2)).toMatchObject([
      { choices: [], usage: { total_tokens: expect.any(Number) } },
      'data: [DONE]',
    ]);
    const events = streamed(await (await ask(responses, { input: hello, stream: true })).text()) as {
      type: string;
      delta?: string;
    }[];
    expect(events.map(({ delta = '' }) => delta).join('')).toBe(introduction);
    expect(events.at(-1)).toMatchObject({ type: 'response.completed', sequence_number: events.length - 1 });
  });

  it('continue a conversation in the process that has all of its history', async () => {
    const messages = [...hello];
    const sessions: (string | null)[] = [];
    for (const question of ['What is my name?', 'My dog is Rex', 'Who is my dog?', 'What is my name?', '']) {
      const response = await ask(completions, { messages });
      const { choices } = (await response.json()) as Completion;
      sessions.push(response.headers.get('x-session'));
      messages.push(
        { role: 'assistant', content: choices[0]?.message.content ?? '' },
        { role: 'user', content: question },
      );
    }
    expect(sessions).toEqual(['replay', 'live', 'live', 'live', 'live']);
    expect(messages.at(-2)?.content).toBe('Your name is Ada.');
    const other = await ask(responses, {
      input: [...messages.slice(0, -1), { role: 'user', content: 'Who is my dog?' }],
    });
    const { output } = (await other.json()) as Responded;
    expect([other.headers.get('x-session'), output[0]?.content[0]?.text]).toEqual(['live', 'Your dog is Rex.']);
  });

  it.each([
    [completions, { messages: [{ role: 'user', content: 'word '.repeat(200_000) }] }],
    [responses, { input: 'word '.repeat(200_000) }],
  ])('cancel a job when its client disconnects in mid-stream: %s', async (path, body) => {
    const before = (await service.jobProcesses()).length;
    const [leaving, id] = [new AbortController(), `gone${path.replaceAll('/', '-')}`];
    const response = await ask(path, { ...body, model: 'echo', stream: true }, id, leaving.signal);
    const reader = response.body?.getReader();
    while (!Buffer.from((await reader?.read())?.value ?? '').includes('word')) {}
    leaving.abort();
    const record = await service.log('http_request_completed', ({ request_id }) => request_id === id);
    expect(record).toMatchObject({ status_code: 499, outcome: 'cancelled' });
    await untilJobs(service, 0, 0);
    await until(async () => (await service.jobProcesses()).length <= before, 'its process to be gone');
  });

  it.each([
    [{ authorization: 'Bearer wrong' }, { messages: hello }, 401, 'authentication_error', 'unauthorized'],
    [{}, { messages: hello, model: 'gpt-5' }, 404, 'invalid_request_error', 'model_not_found'],
    [{}, { messages: [] }, 400, 'invalid_request_error', 'validation_error'],
  ])('report errors in the format of OpenAI: %j %j', async (headers, body, status, type, code) => {
    const answer = await service.fetch(completions, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${key}`, ...headers },
      body: JSON.stringify({ model: 'eliza', ...body }),
    });
    expect(answer.status).toBe(status);
    expect(await answer.json()).toMatchObject({ error: { message: expect.any(String), type, code } });
  });
});

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { installClaude, startWithClaude } from '../../support/agents/claude-service.js';
import {
  type MessagesApi,
  type MessagesRequest,
  says,
  saysAndCalls,
  startMessagesApi,
} from '../../support/agents/messages-api-stub.js';
import { note, ToolClient } from '../../support/clients/tool-client.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import type { Service } from '../../support/service/service.js';

const model = 'claude-sonnet-5';
const live = { MODEL_API_LIVE_SESSIONS: '4' };
const canary = 'canary-in-a-file';

let api: MessagesApi;

beforeAll(() => installClaude(), 600_000);
beforeEach(async () => {
  api = await startMessagesApi();
});
afterEach(() => api.close());

function resultsIn({ body }: MessagesRequest): number {
  return JSON.stringify(body.messages).split('"tool_result"').length - 1;
}

/** Disconnects as soon as the text before the call has arrived. */
async function leaveInsideInput({ url }: Service): Promise<void> {
  const leaving = new AbortController();
  const messages = [{ role: 'user', content: 'Note her.' }];
  const { body } = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages, tools: [note], stream: true }),
    signal: leaving.signal,
  });
  const decoder = new TextDecoder();
  let seen = '';
  for await (const chunk of body as ReadableStream<Uint8Array>) {
    seen += decoder.decode(chunk, { stream: true });
    if (seen.includes('I note her.')) break;
  }
  leaving.abort();
}

describe('A loop of client tools with the real claude', () => {
  it('runs twelve rounds in one turn, each with its call and text, and no extra request', async () => {
    await using service = await startWithClaude(api, { env: live });
    api.behave = (request) => {
      const round = resultsIn(request);
      return round < 12 ? saysAndCalls(`Round ${round}.`, { name: 'note', input: { who: `${round}` } }) : says('Done.');
    };
    const client = new ToolClient(service, 'any', { model });
    let round = await client.say('Note them all.');
    for (let at = 0; at < 12; at++) {
      expect(round.text).toBe(`Round ${at}.`);
      expect(round.calls.map((call) => JSON.parse(call.function.arguments))).toEqual([{ who: `${at}` }]);
      round = await client.answer(() => `noted ${at}.`);
      expect(round.session).toBe('live');
    }
    expect([round.text, round.calls]).toEqual(['Done.', []]);
    expect(api.requests).toHaveLength(13);
    const heard = JSON.stringify(api.requests.at(-1)?.body.messages);
    expect(heard.match(/noted \d+\./g)).toEqual(Array.from({ length: 12 }, (_, at) => `noted ${at}.`));
    expect(heard).not.toMatch(/denied|interrupted|want to proceed|not allowed|is_error":true/i);
  });

  it('ends if its client disconnects inside the input of a call: no client gets the partial call, and the next request is answered', async () => {
    await using service = await startWithClaude(api, { env: live });
    api.behave = () => saysAndCalls('I note her.', { name: 'note', input: { who: 'Ada' }, isUnfinished: true });
    await leaveInsideInput(service);
    await untilJobs(service, 0, 0); // the process has ended, or was renewed
    api.behave = (request) =>
      resultsIn(request) === 0 ? saysAndCalls('', { name: 'note', input: { who: 'Bob' } }) : says('Done.');
    const client = new ToolClient(service, 'any', { model });
    const { calls } = await client.say('Note her.');
    expect(calls.map((call) => call.function.arguments)).toEqual(['{"who":"Bob"}']);
    expect(await client.answer(() => 'noted')).toMatchObject({ text: 'Done.', session: 'live' });
  });

  it.each([
    ['Read', (path: string) => ({ file_path: path })],
    ['Bash', (path: string) => ({ command: `cat ${path}` })],
  ])('passes a call of the unoffered tool %s to the client, and runs nothing', async (name, inputFor) => {
    await using service = await startWithClaude(api, { env: live });
    const path = join(service.home, 'secret.txt');
    await writeFile(path, canary);
    api.behave = (request) =>
      resultsIn(request) === 0 ? saysAndCalls('', { name, input: inputFor(path) }) : says('So be it.');
    const client = new ToolClient(service, 'any', { model });
    const { calls } = await client.say('Read it.');
    expect(calls.map((call) => call.function.name)).toEqual([name]);
    expect(await client.answer(() => 'there is no such tool')).toMatchObject({ text: 'So be it.', session: 'replay' });
    expect(JSON.stringify(api.requests)).not.toContain(canary);
  });
});

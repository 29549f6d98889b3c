import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { installClaude, startWithClaude } from '../../support/agents/claude-service.js';
import {
  type MessagesApi,
  type MessagesRequest,
  says,
  saysAndCalls,
  startMessagesApi,
  thinking,
} from '../../support/agents/messages-api-stub.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { keyHeaders, keysFileOf } from '../../support/service/accounts-lab.js';
import type { Service } from '../../support/service/service.js';

const ada = keyHeaders('ada');

let api: MessagesApi;
let folder: TemporaryFolder;
let service: Service;

const inFolder = (name: string) => join(folder.path, name);
const accountLine = (name: string) => `${name} claude token-file=${inFolder(name)}\n`;

/** Returns the token with which a request was sent. */
function tokenOf({ headers }: MessagesRequest): string {
  return String(headers.authorization).replace('Bearer ', '');
}

beforeAll(async () => {
  await installClaude();
  folder = await temporaryFolder();
  api = await startMessagesApi();
  for (const name of ['one', 'two']) await writeFile(inFolder(name), `sk-ant-oat01-${name}\n`, { mode: 0o600 });
  await writeFile(inFolder('keys'), keysFileOf({ ada: '' }), { mode: 0o600 });
}, 600_000);
beforeEach(async () => {
  // The signature names the account that the thought is bound to.
  api.behave = (request, index) => thinking(says(`Answer ${index}`), `signed for ${tokenOf(request)}`);
  await writeFile(inFolder('accounts'), accountLine('one'));
  service = await startWithClaude(api, {
    env: {
      MODEL_API_ACCOUNTS_FILE: inFolder('accounts'),
      MODEL_API_ACCOUNTS_AS_ROOT: 'true',
      MODEL_API_LIVE_SESSIONS: '4',
      MODEL_API_KEYS_FILE: inFolder('keys'),
    },
  });
});
afterEach(() => service.stop());
afterAll(async () => {
  await api?.close();
  await folder?.[Symbol.asyncDispose]();
});

async function post(path: string, body: object): Promise<Record<string, unknown>> {
  const { status, text } = await service.post(path, body, ada);
  if (status >= 300) throw new Error(`${path}: ${status} ${text}`);
  return JSON.parse(text);
}

const look = { name: 'look', description: 'Looks.', input_schema: { type: 'object', properties: {} } };
const calls = (index: number) => saysAndCalls('', { name: 'look', input: {}, id: `toolu_${index}` });

interface Block {
  readonly type: string;
  readonly id?: string;
}

function sentIn({ body }: MessagesRequest): string {
  return JSON.stringify(body.messages);
}

/** Returns the messages of the last request to the API as text, and the token of that request. */
function last(): { readonly token: string; readonly sent: string } {
  const request = api.requests.at(-1) as MessagesRequest;
  return { token: tokenOf(request), sent: sentIn(request) };
}

describe('A thought that the API has signed', () => {
  it('stays with its account and its model: another one gets the round of a tool without it', async () => {
    const request = { model: 'default', max_tokens: 4000, thinking: { type: 'adaptive' }, tools: [look] };
    const asked = { role: 'user', content: 'first' };
    for (const change of ['none', 'model', 'account'] as const) {
      api.behave = (each, index) => {
        const said = each.body.messages.length > 1 && sentIn(each).includes('a tree') ? says('Seen.') : calls(index);
        return thinking(said, `signed for ${tokenOf(each)}`);
      };
      const { content } = (await post('/v1/messages', { ...request, messages: [asked] })) as { content: Block[] };
      const { id } = content.find(({ type }) => type === 'tool_use') ?? {};
      if (change === 'account') {
        await writeFile(inFolder('accounts'), accountLine('two'));
        await service.log('accounts_loaded');
      }
      const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'a tree' }] };
      const model = change === 'model' ? 'claude-opus-4-8' : 'default';
      await post('/v1/messages', { ...request, model, messages: [asked, { role: 'assistant', content }, result] });
      const { token, sent } = last();
      expect(sent).toMatch(/first.*look.*a tree/);
      const name = change === 'account' ? 'two' : 'one';
      expect([token, sent.includes('signed for')]).toEqual([`sk-ant-oat01-${name}`, change === 'none']);
    }
  });

  it('is gone with the turn that an edit has replaced', async () => {
    const { conversation_id: id } = await post('/chat', { message: 'kept', effort: 'high' });
    const secondAt = api.requests.length;
    await post('/chat', { message: 'replaced', conversation_id: id, effort: 'high' });
    const { conversation_id: fork } = await post(`/chat/${id}/fork`, { from: 2 });
    api.behave = () => thinking(says('Edited'), 'signed after the edit');
    await post('/chat', { message: 'edited', conversation_id: fork, effort: 'high' });
    const { sent } = last();
    expect(sent).toMatch(/kept.*Answer.*edited/);
    expect(sent).not.toContain('replaced');
    expect(sent).not.toContain(`Answer ${secondAt}`);
  });

  it('is not taken from the history of a client, whose account and model nobody knows', async () => {
    const foreign = { type: 'thinking', thinking: 'Let me see.', signature: 'signed elsewhere' };
    await post('/v1/messages', {
      model: 'default',
      max_tokens: 4000,
      thinking: { type: 'adaptive' },
      messages: [
        { role: 'user', content: 'one' },
        { role: 'assistant', content: [foreign, { type: 'text', text: 'two' }] },
        { role: 'user', content: 'three' },
      ],
    });
    expect(last().sent).toMatch(/one.*two.*three/);
    expect(last().sent).not.toContain('signed elsewhere');
  });
});

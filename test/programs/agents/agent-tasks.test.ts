import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startWithClaude } from '../../support/agents/claude-service.js';
import { codingAgents, type FileTools, installCodingAgent, settleAgent } from '../../support/agents/coding-agents.js';
import {
  type Behaviour,
  type MessagesApi,
  type MessagesRequest,
  refusals,
  says,
  saysAndCalls,
  startMessagesApi,
} from '../../support/agents/messages-api-stub.js';
import { until } from '../../support/basics/until.js';
import { canBecomeOthers, strangers } from '../../support/clients/other-users.js';
import { metric } from '../../support/documents/exposition.js';
import { startService } from '../../support/service/service.js';

const model = 'claude-sonnet-5';

/**
 * Starts the relay in its own folder, as a user who may not enter the agent's folder: the relay cannot do what the
 * agent should do.
 */
function startRelay(api: MessagesApi) {
  return startWithClaude(api, {
    env: { MODEL_API_LIVE_SESSIONS: '4', MODEL_API_WORKERS: '1' },
    ...(canBecomeOthers && { user: strangers.ada }),
  });
}

/** Returns the results of the agent's tools, in the order of the calls. */
function resultsIn({ body }: MessagesRequest): string[] {
  const blocks = body.messages.flatMap(({ content }) => (typeof content === 'string' ? [] : content));
  return blocks.filter(({ type }) => type === 'tool_result').map((block) => JSON.stringify(block));
}

/**
 * Model behaviour: writes a file with the agent's tools, reads it, and answers with its text. Other requests of the
 * agent are for titles.
 */
function writesAndReads({ write, read }: FileTools, path: string, text: string) {
  const [writing, reading] = [write(path, text), read(path)];
  return (request: MessagesRequest): Behaviour => {
    const offered = new Set(request.body.tools?.map(({ name }) => name));
    if (!offered.has(writing.name) || !offered.has(reading.name)) return says('A title');
    const results = resultsIn(request);
    if (results.length === 0) return saysAndCalls('I write.', writing);
    if (results.length === 1) return saysAndCalls('', reading);
    return says('The file says: ', results.at(-1)?.includes(text) === true ? text : 'nothing', '. Done.');
  };
}

describe.each(codingAgents)('%s as a client', (agent) => {
  beforeAll(() => installCodingAgent(agent), 600_000);

  it('writes a file, reads it and answers in three rounds of one claude process, which runs no tool itself', async () => {
    await using api = await startMessagesApi();
    await using service = await startRelay(api);
    await using client = await settleAgent(agent, service.url, model);
    const path = join(client.work, 'note.txt');
    const text = `grüße 🚀 ${randomUUID()}`;
    api.behave = writesAndReads(client.tools, path, text);
    const { code, output } = await client.task('Write a note, read it, and tell me what it says.');
    expect(output).toContain(`The file says: ${text}. Done.`);
    expect(code).toBe(0);
    expect(await readFile(path, 'utf8')).toBe(text);
    const rounds = (outcome: string) => metric(service, `tool_rounds_total{outcome="${outcome}"}`);
    expect([await rounds('live'), await rounds('replay')]).toEqual([2, 0]);
    const answered = api.requests.filter((request) => resultsIn(request).length > 0);
    expect(answered.map((request) => resultsIn(request).length)).toEqual([1, 2]);
    expect(await service.stop()).toBe(0); // throws if a process is left
  });
});

it('Claude Code lists the models of the service, and the service accepts their ids', async () => {
  await using service = await startService();
  await using client = await settleAgent('Claude Code', service.url);
  await client.chat('Hello');
  const path = join(client.home, '.claude', 'cache', 'gateway-models.json');
  const { models } = JSON.parse(await until(() => readFile(path, 'utf8').catch(() => null), 'the list of models'));
  expect(models).toMatchObject([{ id: 'anthropic/eliza', display_name: 'Eliza' }, { id: 'anthropic/echo' }]);
  const messages = [{ role: 'user', content: 'word for word' }];
  const { body } = await service.post('/v1/messages', { model: models[1].id, max_tokens: 9, messages });
  expect(body).toMatchObject({ content: [{ type: 'text', text: 'word for word' }] });
});

/** How often each agent sends a request that fails. The other agents are tested in coding-agents.test.ts. */
describe.each([
  ['Claude Code', 1],
  ['codex', 1],
  ['qwen-code', 3],
] as const)('%s as a client of a failing model', (agent, tries) => {
  it('shows its user why the model failed, and retries no more often than docs/sdks.md says', async () => {
    await using api = await startMessagesApi();
    api.behave = () => refusals.broken;
    await using service = await startRelay(api);
    await using client = await settleAgent(agent, service.url, model);
    const { output } = await client.task('Say hello to me.');
    expect(output).toContain('Internal server error');
    const asked = api.requests.filter(({ body }) => (body.tools ?? []).length > 0);
    expect(asked).toHaveLength(tries);
  });
});

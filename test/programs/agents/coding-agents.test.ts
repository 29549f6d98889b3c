import { startWithClaude } from '../../support/agents/claude-service.js';
import { type CodingAgent, installCodingAgent, settleAgent } from '../../support/agents/coding-agents.js';
import { conversationOf, says, startMessagesApi, systemOf } from '../../support/agents/messages-api-stub.js';
import { until } from '../../support/basics/until.js';
import { metric } from '../../support/documents/exposition.js';
import { type LogRecord, type Service, script, startService } from '../../support/service/service.js';

const live = { MODEL_API_LIVE_SESSIONS: '4' };
/** Agents that send the text of the user unchanged. `asides`: number of requests for titles. */
const agents = [
  { agent: 'opencode', asides: 1 },
  { agent: 'Continue', asides: 0 },
  { agent: 'pi', asides: 0 },
  { agent: 'Cline', asides: 0 },
] as const satisfies readonly { readonly agent: CodingAgent; readonly asides: number }[];

/** Returns the log records of all requests, once there are this many. The client may get its answer before the record. */
function completions({ logs }: Service, count: number): Promise<LogRecord[]> {
  return until(() => {
    const records = logs.filter(
      ({ event, path }) => event === 'http_request_completed' && path === '/v1/chat/completions',
    );
    return records.length >= count ? records : null;
  }, 'the log records of the requests');
}

/** Returns how many later turns continued in the process of their conversation, and how many were replayed. */
async function furtherTurns(service: Service) {
  const of = (result: string) => metric(service, `live_session_total{result="${result}"}`);
  return { live: await of('hit'), replayed: await of('replay') };
}

describe.each(agents)('$agent as a client', ({ agent, asides }) => {
  beforeAll(() => installCodingAgent(agent), 600_000);

  it('chats with the settings of docs/sdks.md and claude, which receives each message in its role and stays live despite whitespace around answers', async () => {
    await using api = await startMessagesApi();
    api.behave = (request) =>
      says('\n\n Well', `, ${conversationOf(request).length}`, ' – grüße 🚀:\n\n    x = 1;  \n\n');
    await using service = await startWithClaude(api, { env: live });
    await using client = await settleAgent(agent, service.url, 'claude-haiku-4-5');
    const seen = await client.chat('Hello', 'And then?');
    expect(seen).toEqual([
      expect.stringContaining('Well, 1 – grüße 🚀:'),
      expect.stringContaining('Well, 3 – grüße 🚀:'),
    ]);
    expect(await furtherTurns(service)).toEqual({ live: 1, replayed: 0 });
    const last = api.requests.at(-1);
    if (last === undefined) throw new Error('claude asks its API');
    expect(conversationOf(last).map(({ role, text }) => [role, text.trim().slice(0, 9)])).toEqual([
      ['user', expect.stringContaining('Hello')],
      ['assistant', 'Well, 1 –'],
      ['user', expect.stringContaining('And then')],
    ]);
    expect(systemOf(last).join('\n')).toMatch(new RegExp(`\\b${agent}\\b`, 'i'));
    expect(last.body.tools?.length).toBeGreaterThan(0);
  });

  it('shows its user why the model failed, and does not retry', async () => {
    const reportingModel = { MODEL_API_CLI: 'demo', MODEL_API_CLI_COMMAND: script('converses.pl') };
    await using service = await startService({ env: { ...reportingModel, ...live } });
    await using client = await settleAgent(agent, service.url);
    const [seen] = await client.chat('die');
    expect(seen).toContain('the model CLI exited with code 3');
    const records = await completions(service, 1 + asides);
    const failed = records.filter(({ outcome }) => outcome !== 'ok');
    expect(failed.map(({ outcome, error }) => [outcome, error])).toEqual([['cli_error', 'cli_error']]);
    expect(records).toHaveLength(1 + asides);
  });
});

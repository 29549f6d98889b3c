import { Agent } from 'node:http';
import { startGeminiApi } from '../test/support/agents/gemini-api-stub.js';
import { installGemini, startWithGemini } from '../test/support/agents/gemini-service.js';
import { KeepAliveClient } from '../test/support/clients/keep-alive.js';
import { DirectGemini } from './support/direct-gemini.js';
import { alternately } from './support/pairs.js';
import { type Pair, ratioRow } from './support/ratio-row.js';
import { dropLog } from './support/service-log.js';
import { settled } from './support/settled.js';
import { readStream } from './support/sse-client.js';
import type { Row } from './support/table.js';
import { prompt } from './support/task.js';

const targets = { ask: 0.1, chat: 0.05 };

/**
 * Measures the real gemini with a stub of its API, one request at a time: through the relay, and started for each
 * prompt.
 */
export async function gemini(rounds: number): Promise<Row[]> {
  const isThere = await installGemini().catch((error: Error) => {
    process.stderr.write(`gemini: not measured, because it can not be installed: ${error.message.slice(0, 300)}\n`);
  });
  if (isThere === undefined) return [];
  await using api = await startGeminiApi();
  await using direct = await DirectGemini.make({ GOOGLE_GEMINI_BASE_URL: api.url, GEMINI_API_KEY: 'key-of-the-bench' });
  await using service = await startWithGemini(api, {
    env: { MODEL_API_STANDBY: '1', MODEL_API_LIVE_SESSIONS: '4', MODEL_API_READINESS_INTERVAL_SECONDS: '0' },
  });
  dropLog(service);
  using client = new KeepAliveClient(service.port, 1);
  const agent = new Agent({ keepAlive: true });
  const post = async (path: string, body: object) => {
    const answer = await client.post(path, body);
    if (answer.status !== 200) throw new Error(`the relay answered ${JSON.stringify(answer)}`);
    return answer.body;
  };
  const timed = async (path: string, body: object) => {
    await settled(service, 1);
    const begun = performance.now();
    await post(path, body);
    return performance.now() - begun;
  };
  const firstDelta = async () => {
    await settled(service, 1);
    return (await readStream(agent, service.port, '/ask', { prompt })).firstDeltaMs;
  };
  const id = (await post('/chat', { message: prompt })).conversation_id;
  const bare = async () => {
    await settled(service, 1);
    return { relaysMs: await direct.run(), typedMs: await direct.runAsTyped() };
  };
  const relay = async () => ({
    askMs: await timed('/ask', { prompt }),
    chatMs: await timed('/chat', { message: prompt, conversation_id: id }),
    firstDeltaMs: await firstDelta(),
  });
  await alternately(1, { bare, relay }); // to warm up
  const measured = await alternately(rounds, { bare, relay });
  agent.destroy();
  type Round = (typeof measured)[number];
  const row = (question: string, target: number | null, of: (round: Round) => Pair) =>
    ratioRow(`${question}, ${rounds} pairs`, target, measured.map(of));
  return [
    row("POST /ask ÷ `gemini -p` with the relay's settings", targets.ask, (at) => [at.relay.askMs, at.bare.relaysMs]),
    row('POST /ask ÷ `gemini -p "…"` as somebody types it', null, (at) => [at.relay.askMs, at.bare.typedMs]),
    row("A further turn of POST /chat ÷ `gemini -p` with the relay's settings", targets.chat, (at) => [
      at.relay.chatMs,
      at.bare.relaysMs,
    ]),
    row("First delta of POST /ask ÷ `gemini -p` with the relay's settings", null, (at) => [
      at.relay.firstDeltaMs,
      at.bare.relaysMs,
    ]),
  ];
}

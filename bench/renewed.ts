import { randomUUID } from 'node:crypto';
import { installClaude, startWithClaude } from '../test/support/agents/claude-service.js';
import { makeClaudeHome } from '../test/support/agents/claude-session.js';
import { startWithCodex } from '../test/support/agents/codex-service.js';
import { type MessagesApi, saysSlowly, startMessagesApi } from '../test/support/agents/messages-api-stub.js';
import { startResponsesApi } from '../test/support/agents/responses-api-stub.js';
import { createBatch, promptLine, untilEnded, upload } from '../test/support/clients/batches.js';
import type { Service } from '../test/support/service/service.js';
import { reuseCosts } from './reuse-costs.js';
import { codexByHand } from './support/codex-by-hand.js';
import { DirectClaude } from './support/direct-claude.js';
import { alternately } from './support/pairs.js';
import { processorMs } from './support/processor-time.js';
import { ratioRow } from './support/ratio-row.js';
import { dropLog } from './support/service-log.js';
import { sum } from './support/statistics.js';
import type { Row } from './support/table.js';
import { prompt } from './support/task.js';

/** Clients without a key have no renewed processes. */
const key = 'the-key-of-the-client-that-is-measured';
const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
const keyed = {
  MODEL_API_KEY: key,
  MODEL_API_STANDBY: '1',
  MODEL_API_LIVE_SESSIONS: '4',
  MODEL_API_MAX_CONCURRENT: '4',
};
const targets = {
  ask: 0.09,
  stream: 0.08,
  burst: 0.25,
  thinkingBurst: 0.68,
  edited: 1.2,
  processor: 120,
  batch: 12,
  codex: 0.08,
};
const minPairs = 20;
const questions = 200;
const batchLines = 300;
const chatTurns = 10;
const thinkingMs = 2000;

/** Measures questions of one client in renewed processes, against real CLIs that are started for each prompt. */
export async function renewed(rounds: number): Promise<Row[]> {
  const pairs = Math.max(rounds, minPairs);
  return [...(await overClaude(pairs)), ...(await overCodex(pairs))];
}

async function post(service: Service, path: string, body: object): Promise<Response> {
  const response = await fetch(`${service.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  if (response.status !== 200) throw new Error(`the relay answered ${await response.text()}`);
  return response;
}

async function ask(service: Service): Promise<number> {
  const begun = performance.now();
  await (await post(service, '/ask', { prompt })).text();
  return performance.now() - begun;
}

async function firstDelta(service: Service): Promise<number> {
  const begun = performance.now();
  let firstMs: number | null = null;
  const { body } = await post(service, '/ask', { prompt, stream: true });
  for await (const piece of body ?? []) {
    if (Buffer.from(piece).includes('event: delta')) firstMs ??= performance.now() - begun;
  }
  return firstMs ?? Number.NaN;
}

async function overClaude(pairs: number): Promise<Row[]> {
  await using api = await startMessagesApi();
  await using home = await makeClaudeHome();
  const env = { ANTHROPIC_BASE_URL: api.url, ANTHROPIC_API_KEY: 'sk-ant-test' };
  const direct = await DirectClaude.find(await installClaude(), home, env);
  await using service = await startWithClaude(api, { env: { ...keyed, MODEL_API_FILES: 'memory' } });
  dropLog(service);
  const bare = () => direct.run();
  const relay = async () => ({ askMs: await ask(service), firstMs: await firstDelta(service) });
  await alternately(2, { bare, relay });
  const singles = await alternately(pairs, { bare, relay });
  const bursts = await alternately(5, { bare: () => byHand(direct), relay: () => burst(service) });
  return [
    ratioRow(
      `A further POST /ask of a client ÷ \`claude -p\`, ${pairs} pairs`,
      targets.ask,
      singles.map((round) => [round.relay.askMs, round.bare.resultMs]),
    ),
    ratioRow(
      `Its first delta ÷ first byte of \`claude -p\`, ${pairs} pairs`,
      targets.stream,
      singles.map((round) => [round.relay.firstMs, round.bare.firstByteMs]),
    ),
    ratioRow(
      '16 POST /ask at once at 4 slots ÷ 16 `claude -p`, 4 at a time, 5 pairs',
      targets.burst,
      bursts.map(pairOf),
    ),
    await processorRow(service),
    await batchRow(service),
    await editsRow(service, pairs),
    ...(await reuseCosts(api, Math.min(pairs, 10))),
    await thinkingRow(service, direct, api),
  ];
}

/** Measures bursts while the API thinks before each answer. The API thinks for all later requests, too. */
async function thinkingRow(service: Service, direct: DirectClaude, api: MessagesApi): Promise<Row> {
  api.behave = () => saysSlowly(thinkingMs, prompt);
  const bursts = await alternately(3, { bare: () => byHand(direct), relay: () => burst(service) });
  return ratioRow('The same with an API that thinks for 2 s, 3 pairs', targets.thinkingBurst, bursts.map(pairOf));
}

/** Compares chats whose client sends the history: in one of them, each second message is edited and sent again. */
async function editsRow(service: Service, pairs: number): Promise<Row> {
  const bare = () => chatTurnMs(service, false);
  const relay = () => chatTurnMs(service, true);
  await alternately(1, { bare, relay });
  const chats = await alternately(Math.min(pairs, 10), { bare, relay });
  return ratioRow(
    `A turn of a chat in which each second message is edited ÷ without edits, ${chatTurns} turns, ${chats.length} pairs`,
    targets.edited,
    chats.map(pairOf),
  );
}

/**
 * Returns the mean time of a turn after the first two, which have a start or a replay in both kinds of chats. An edit sends
 * the newest message again with another text.
 */
async function chatTurnMs(service: Service, isEdited: boolean): Promise<number> {
  const messages: { readonly role: string; readonly content: string }[] = [];
  const nonce = randomUUID();
  const times: number[] = [];
  for (let turn = 0; turn < chatTurns; turn++) {
    const isEdit = isEdited && turn > 0 && turn % 2 === 0;
    if (isEdit) messages.splice(-2);
    messages.push({ role: 'user', content: `${nonce} ${isEdit ? 'edited' : 'message'} ${turn}` });
    const begun = performance.now();
    const response = await post(service, '/v1/chat/completions', { model: 'default', messages });
    const body = (await response.json()) as { choices: { message: { content: string } }[] };
    if (turn > 1) times.push(performance.now() - begun);
    messages.push({ role: 'assistant', content: body.choices[0]?.message.content ?? '' });
  }
  return sum(times) / times.length;
}

function pairOf({ relay, bare }: { readonly relay: number; readonly bare: number }) {
  return [relay, bare] as const;
}

async function burst(service: Service): Promise<number> {
  const begun = performance.now();
  await Promise.all(Array.from({ length: 16 }, () => ask(service)));
  return performance.now() - begun;
}

async function byHand(direct: DirectClaude): Promise<number> {
  const begun = performance.now();
  const lane = async () => {
    for (let run = 0; run < 4; run++) await direct.run();
  };
  await Promise.all([lane(), lane(), lane(), lane()]);
  return performance.now() - begun;
}

/** Processor time of the service and of all its CLI processes, living and reaped. */
async function usedMs(service: Service): Promise<number> {
  return processorMs([service.pid, ...(await service.workers()), ...(await service.jobProcesses())]);
}

async function processorRow(service: Service): Promise<Row> {
  const before = await usedMs(service);
  for (let question = 0; question < questions; question++) await ask(service);
  const each = ((await usedMs(service)) - before) / questions;
  return {
    question: `Processor time of each of ${questions} questions of one client, service and CLIs`,
    target: `≤ ${targets.processor} ms`,
    measured: `${each.toFixed(0)} ms`,
    holds: each <= targets.processor,
  };
}

async function batchRow(service: Service): Promise<Row> {
  const lines = Array.from({ length: batchLines }, (_, index) => promptLine(`line-${index}`, prompt)).join('\n');
  const begun = performance.now();
  const authorization = { authorization: headers.authorization };
  const { body: file } = await upload(service, lines, { purpose: 'batch' }, authorization);
  const { body } = await createBatch(service, file.id, {}, authorization);
  const { request_counts: counts } = await untilEnded(service, body.id, 600_000, authorization);
  if (counts.completed !== batchLines) throw new Error(`the batch has answered ${counts.completed} lines`);
  const perSecond = batchLines / ((performance.now() - begun) / 1000);
  return {
    question: `Lines of a batch per second, ${batchLines} lines, a stub that answers at once`,
    target: `≥ ${targets.batch}`,
    measured: perSecond.toFixed(1),
    holds: perSecond >= targets.batch,
  };
}

async function overCodex(pairs: number): Promise<Row[]> {
  await using agent = await codexByHand.open();
  await using api = await startResponsesApi();
  await using service = await startWithCodex(api, { env: keyed });
  const bare = () => agent.byHand();
  const relay = () => ask(service);
  await alternately(2, { bare, relay });
  const rounds = await alternately(pairs, { bare, relay });
  return [
    ratioRow(`A further POST /ask of a client ÷ \`codex exec\`, ${pairs} pairs`, targets.codex, rounds.map(pairOf)),
  ];
}

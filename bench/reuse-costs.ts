import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { digestOf } from '../src/shared/config/api-keys.js';
import { startWithClaude } from '../test/support/agents/claude-service.js';
import type { MessagesApi } from '../test/support/agents/messages-api-stub.js';
import { temporaryFolder } from '../test/support/basics/folder.js';
import { randomNumbers } from '../test/support/basics/random.js';
import type { Service } from '../test/support/service/service.js';
import { memoryOf } from './support/memory-of.js';
import { alternately } from './support/pairs.js';
import { ratioRow } from './support/ratio-row.js';
import { dropLog } from './support/service-log.js';
import { sum } from './support/statistics.js';
import type { Row } from './support/table.js';
import { prompt } from './support/task.js';

const maxRatio = 1.05;
const maxRestMb = 240;
const sessions = 4;
const crowd = 20;
const crowdQuestions = 40;
const crowdLanes = 8;
const fewJobs = 400;
const refillMs = 2000;
/** Idle processes collect their memory after three seconds. */
const restMs = 8000;
const minFirstPairs = 30;
const seed = 7;

const keyOf = (index: number) => `the-key-of-client-${index}-in-this-bench`;

/**
 * Measures what must not become slower or larger: the same service with MODEL_API_REUSE=on and off, with many clients.
 */
export async function reuseCosts(api: MessagesApi, pairs: number): Promise<Row[]> {
  const firstPairs = Math.max(pairs, minFirstPairs);
  await using folder = await temporaryFolder();
  const path = join(folder.path, 'keys');
  const lines = Array.from(
    { length: crowd + 2 * firstPairs },
    (_, index) => `client${index}:sha256:${digestOf(keyOf(index))}\n`,
  );
  await writeFile(path, lines.join(''), { mode: 0o600 });
  const env = { MODEL_API_KEYS_FILE: path, MODEL_API_STANDBY: '1', MODEL_API_LIVE_SESSIONS: String(sessions) };
  const start = (reuse: 'on' | 'off') =>
    startWithClaude(api, { env: { ...env, MODEL_API_MAX_CONCURRENT: '4', MODEL_API_REUSE: reuse } });
  const rest = await restRow(() => start('on'));
  await using on = await start('on');
  dropLog(on);
  const memory = await crowdMemoryRow(on);
  await using off = await start('off');
  dropLog(off);
  return [
    await firstQuestionRow(on, off, firstPairs),
    await chatRow(on, off, pairs),
    await crowdRow(on, off),
    memory,
    rest,
  ];
}

async function post(service: Service, path: string, body: object, client: number): Promise<Record<string, unknown>> {
  const headers = { authorization: `Bearer ${keyOf(client)}`, 'content-type': 'application/json' };
  const response = await fetch(`${service.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`the relay answered ${text}`);
  return JSON.parse(text) as Record<string, unknown>;
}

async function timeOf(act: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await act();
  return performance.now() - begun;
}

async function firstQuestionRow(on: Service, off: Service, pairs: number): Promise<Row> {
  let client = crowd;
  const first = async (service: Service) => {
    await sleep(refillMs);
    return timeOf(() => post(service, '/ask', { prompt }, client++));
  };
  const rounds = await alternately(pairs, { bare: () => first(off), relay: () => first(on) });
  return ratioRow(
    `First POST /ask of a client ÷ the same with MODEL_API_REUSE=off, ${pairs} pairs`,
    maxRatio,
    rounds.map(({ relay, bare }) => [relay, bare]),
  );
}

async function chatRow(on: Service, off: Service, pairs: number): Promise<Row> {
  const begin = async (service: Service) => {
    const { conversation_id: id } = await post(service, '/chat', { message: prompt }, 0);
    return () => timeOf(() => post(service, '/chat', { message: prompt, conversation_id: id }, 0));
  };
  const [relay, bare] = [await begin(on), await begin(off)];
  await alternately(2, { bare, relay });
  const rounds = await alternately(2 * pairs, { bare, relay });
  return ratioRow(
    `A further turn of POST /chat ÷ the same with MODEL_API_REUSE=off, ${rounds.length} pairs`,
    maxRatio,
    rounds.map((round) => [round.relay, round.bare]),
  );
}

async function crowdRow(on: Service, off: Service): Promise<Row> {
  const random = randomNumbers(seed);
  const ask = (service: Service) => {
    const clients = Array.from({ length: crowdQuestions }, () => Math.floor(random() * crowd));
    const lane = async () => {
      for (let client = clients.pop(); client !== undefined; client = clients.pop())
        await post(service, '/ask', { prompt }, client);
    };
    return timeOf(() => Promise.all(Array.from({ length: crowdLanes }, lane)));
  };
  const rounds = await alternately(4, { bare: () => ask(off), relay: () => ask(on) });
  return ratioRow(
    `${crowdQuestions} questions of ${crowd} clients at random on 4 slots ÷ the same with MODEL_API_REUSE=off, 4 pairs`,
    maxRatio,
    rounds.map(({ relay, bare }) => [relay, bare]),
  );
}

/** Measures the processes at rest after each of many clients has asked once. */
async function crowdMemoryRow(service: Service): Promise<Row> {
  for (let client = 0; client < crowd; client++) await post(service, '/ask', { prompt }, client);
  await sleep(restMs);
  const programs = await service.jobProcesses();
  const memory = await Promise.all([service.pid, ...(await service.workers()), ...programs].map(memoryOf));
  const limit = sessions + 1;
  return {
    question: `Processes of the CLI after ${crowd} clients have asked once, with at most ${sessions} sessions and one on standby`,
    target: `≤ ${limit}`,
    measured: `${programs.length}; PSS with the service ${sum(memory.map(({ pssMb }) => pssMb)).toFixed(0)} MB`,
    holds: programs.length <= limit,
  };
}

/** Measures a service that has done nothing else. */
async function restRow(start: () => Promise<Service>): Promise<Row> {
  await using service = await start();
  dropLog(service);
  for (let job = 0; job < fewJobs; job++) await post(service, '/ask', { prompt }, 0);
  await sleep(restMs);
  const memory = await Promise.all([service.pid, ...(await service.workers())].map(memoryOf));
  const restMb = sum(memory.map(({ rssMb }) => rssMb));
  return {
    question: `Memory of primary and workers at rest, after ${fewJobs} questions in renewed processes`,
    target: `≤ ${maxRestMb} MB`,
    measured: `RSS ${restMb.toFixed(0)} MB`,
    holds: restMb <= maxRestMb,
  };
}

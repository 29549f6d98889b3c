import { join } from 'node:path';
import { isSqliteThere } from '../src/features/sqlite/node-sqlite.js';
import { temporaryFolder } from '../test/support/basics/folder.js';
import { type Service, startService, twoWorkers } from '../test/support/service/service.js';
import { startRedis } from '../test/support/stores/redis-server.js';
import { Generator } from './support/generator.js';
import { alternately } from './support/pairs.js';
import { dropLog } from './support/service-log.js';
import { median, spread } from './support/statistics.js';
import type { Row } from './support/table.js';

const task = { concurrency: 1, forMs: 800 };
const acceptedEach = 40;
const maxAcceptMs = 5;

/** Measures the cost of conversations and background jobs that survive a restart. */
export async function stores(rounds: number): Promise<Row[]> {
  return [...(await withSqlite(rounds)), ...(await withRedis(rounds))];
}

async function withSqlite(rounds: number): Promise<Row[]> {
  if (!isSqliteThere()) return [notMeasured(`SQLite: ${process.version} has none`)];
  await using folder = await temporaryFolder();
  const store = `sqlite:${join(folder.path, 'state', 'store.db')}`;
  return [await turnOver('SQLite', store, 1.3, rounds), await accepted('SQLite', store, rounds)];
}

async function withRedis(rounds: number): Promise<Row[]> {
  await using redis = await startRedis('--appendonly', 'yes');
  return [await turnOver('Redis', redis.url, 1.2, rounds), await accepted('Redis', redis.url, rounds)];
}

function start(store: string): Promise<Service> {
  return startService({
    env: { ...twoWorkers, MODEL_API_LIVE_SESSIONS: '4', MODEL_API_DEFAULT_MODEL: 'echo', MODEL_API_STORE: store },
  });
}

/** Measures further turns in live sessions. Only the first few turns of the conversations are not further ones. */
async function turnOver(name: string, store: string, target: number, count: number): Promise<Row> {
  await using memory = await start('memory');
  await using kept = await start(store);
  for (const service of [memory, kept]) dropLog(service);
  await using inMemory = Generator.chatting(memory.port, 1_000_000);
  await using inStore = Generator.chatting(kept.port, 1_000_000);
  for (const generator of [inMemory, inStore]) await generator.perform({ ...task, forMs: 2000 });
  const rounds = await alternately(count, {
    bare: async () => median((await inMemory.perform(task)).latencies),
    relay: async () => median((await inStore.perform(task)).latencies),
  });
  const ratios = rounds.map(({ bare, relay }) => relay / bare);
  const [bare, relay] = [median(rounds.map((round) => round.bare)), median(rounds.map((round) => round.relay))];
  return {
    question: `A further turn of POST /chat with ${name} ÷ memory at p50, live sessions`,
    target: `≤ ${target}`,
    measured: `${median(ratios).toFixed(2)} (${spread(ratios, 2)}): ${relay.toFixed(2)} ms against ${bare.toFixed(2)} ms`,
    holds: median(ratios) <= target,
  };
}

/** Measures the acceptance of background jobs, while as many run as there are slots. */
async function accepted(name: string, store: string, count: number): Promise<Row> {
  await using service = await start(store);
  dropLog(service);
  const rounds: number[] = [];
  await acceptMs(service);
  for (let round = 0; round < count; round++) rounds.push(await acceptMs(service));
  return {
    question: `POST /ask with respond-async to its 202 at p50, kept in ${name}`,
    target: `≤ ${maxAcceptMs} ms`,
    measured: `${median(rounds).toFixed(1)} ms (${spread(rounds, 1)})`,
    holds: median(rounds) <= maxAcceptMs,
  };
}

async function acceptMs(service: Service): Promise<number> {
  const latencies: number[] = [];
  for (let job = 0; job < acceptedEach; job++) {
    const begunMs = performance.now();
    const { status, body } = await service.post('/ask', { prompt: 'Hello' }, { Prefer: 'respond-async' });
    latencies.push(performance.now() - begunMs);
    if (status !== 202 || body.durable !== true) throw new Error(`answered ${status}: ${JSON.stringify(body)}`);
  }
  return median(latencies);
}

function notMeasured(why: string): Row {
  return { question: 'What a store costs', target: '–', measured: `not measured with ${why}`, holds: null };
}

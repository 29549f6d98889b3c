import { type Service, startService, twoWorkers } from '../test/support/service/service.js';
import { Generator } from './support/generator.js';
import type { OneShot } from './support/one-shots.js';
import { alternately } from './support/pairs.js';
import { processorMs } from './support/processor-time.js';
import { dropLog } from './support/service-log.js';
import { median, spread, sum } from './support/statistics.js';
import type { Row } from './support/table.js';
import { perSecond, prompt, type Yield } from './support/task.js';

const echo: OneShot = { name: 'the demo model', command: ['-'], answer: prompt };
const turnsEach = 20;
const targetTurns = 1500;

/** Measures the cost of a conversation turn compared to a plain question, both with the echoing demo model. */
export async function chat(rounds: number): Promise<Row[]> {
  return [await overAsk(0, rounds), await overAsk(4, rounds), await liveTurns(rounds)];
}

function start(liveSessions: number): Promise<Service> {
  return startService({
    env: { ...twoWorkers, MODEL_API_LIVE_SESSIONS: String(liveSessions), MODEL_API_DEFAULT_MODEL: 'echo' },
  });
}

async function overAsk(liveSessions: number, count: number): Promise<Row> {
  await using service = await start(liveSessions);
  dropLog(service);
  await using asking = Generator.againstRelay(service.port, echo);
  await using chatting = Generator.chatting(service.port, turnsEach);
  const task = { concurrency: 1, forMs: 500 };
  await asking.perform(task);
  await chatting.perform(task);
  const rounds = await alternately(count, {
    bare: async () => median((await asking.perform(task)).latencies),
    relay: async () => median((await chatting.perform(task)).latencies),
  });
  const added = rounds.map(({ bare, relay }) => relay - bare);
  const [ask, chat] = [median(rounds.map(({ bare }) => bare)), median(rounds.map(({ relay }) => relay))];
  return {
    question: `POST /chat over POST /ask at p50, ${turnsEach} turns each, live sessions ${liveSessions === 0 ? 'off' : 'on'}`,
    target: '–',
    measured: `${median(added).toFixed(1)} ms (${spread(added, 1)}): ${chat.toFixed(1)} ms against ${ask.toFixed(1)} ms`,
    holds: null,
  };
}

/** Measures turns of conversations with live sessions, which cost only the relay's part. */
async function liveTurns(count: number): Promise<Row> {
  await using service = await start(4);
  dropLog(service);
  await using generator = Generator.chatting(service.port, 1_000_000);
  const task = { concurrency: 4, forMs: 800 };
  await generator.perform({ ...task, forMs: 3000 });
  const rest = [...(await service.workers()), ...(await service.jobProcesses())];
  const parts = { generator: [generator.pid], primary: [service.pid], 'workers and CLIs': rest };
  const before = await costs(parts);
  const rounds: Yield[] = [];
  for (let round = 0; round < count; round++) rounds.push(await generator.perform(task));
  const after = await costs(parts);
  const turns = sum(rounds.map(({ jobs }) => jobs));
  const shares = Object.keys(parts).map((name, at) => {
    const ms = ((after[at] as number) - (before[at] as number)) / turns;
    return `${name} ${ms.toFixed(2)}`;
  });
  const rates = rounds.map(perSecond);
  return {
    question: 'Turns per second of the demo model in live sessions, 4 conversations at once',
    target: `≥ ${targetTurns}`,
    measured: `${median(rates).toFixed(0)} (${spread(rates, 0)}); processor ms a turn: ${shares.join(', ')}`,
    holds: median(rates) >= targetTurns,
  };
}

function costs(parts: Readonly<Record<string, readonly number[]>>): Promise<number[]> {
  return Promise.all(Object.values(parts).map(processorMs));
}

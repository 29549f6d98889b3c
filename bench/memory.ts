import { setTimeout as sleep } from 'node:timers/promises';
import { KeepAliveClient } from '../test/support/keep-alive.js';
import { type Service, startWithProgram, twoWorkers } from '../test/support/service.js';
import { Generator } from './support/generator.js';
import { type Memory, memoryOf } from './support/memory-of.js';
import { cat } from './support/one-shots.js';
import { median, spread, sum } from './support/statistics.js';
import type { Row } from './support/table.js';

const targetMb = 220;
const targetAfterMuchMb = 250;
const restMs = 5000;
const workMs = 2000;
const reads = 100_000;
const jobs = 1000;
const connections = 8;
const maxRounds = 3;

/** What the service itself keeps in memory when nobody asks for anything: the primary and two workers together. */
export async function memory(rounds: number): Promise<Row[]> {
  const fresh: Memory[] = [];
  const used: Memory[] = [];
  const usedMuch: Memory[] = [];
  for (let round = 0; round < Math.min(rounds, maxRounds); round++) {
    await using service = await startWithProgram(cat.command[0], { ...twoWorkers, MODEL_API_MAX_QUEUE: '100' });
    fresh.push(await atRest(service));
    await work(service);
    used.push(await atRest(service));
    await workMuch(service);
    usedMuch.push(await atRest(service));
  }
  return [
    rowOf('after the start', fresh, targetMb),
    rowOf('after some hundred jobs', used, targetMb),
    rowOf(`after ${reads} reads and ${jobs} jobs more`, usedMuch, targetAfterMuchMb),
  ];
}

/** As fast as one client is served, in the order of a busy day. */
async function workMuch(service: Service): Promise<void> {
  using client = new KeepAliveClient(service.port, connections);
  const ask = async (count: number, send: () => Promise<unknown>) => {
    let left = count;
    const call = async () => {
      while (left-- > 0) await send();
    };
    await Promise.all(Array.from({ length: connections }, call));
  };
  await ask(reads, () => client.get('/health'));
  await ask(jobs, () => client.post('/ask', { prompt: 'Hello.' }));
}

async function work(service: Service): Promise<void> {
  await using generator = Generator.againstRelay(service.port, cat);
  await generator.perform({ concurrency: 4, forMs: workMs });
}

async function atRest(service: Service): Promise<Memory> {
  const pids = [service.pid, ...(await service.workers())];
  await sleep(restMs);
  const each = await Promise.all(pids.map(memoryOf));
  return { rssMb: sum(each.map(({ rssMb }) => rssMb)), pssMb: sum(each.map(({ pssMb }) => pssMb)) };
}

/** The sum of RSS is held against the target: it counts what the three share three times, and so errs against us. */
function rowOf(when: string, measured: readonly Memory[], targetMb: number): Row {
  const rss = measured.map(({ rssMb }) => rssMb);
  const pss = median(measured.map(({ pssMb }) => pssMb));
  return {
    question: `Memory of primary and two workers at rest, ${when}`,
    target: `≤ ${targetMb} MB`,
    measured: `RSS ${median(rss).toFixed(0)} MB (${spread(rss, 0)}); PSS ${pss.toFixed(0)} MB`,
    holds: median(rss) <= targetMb,
  };
}

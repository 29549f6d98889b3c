import { setTimeout as sleep } from 'node:timers/promises';
import { KeepAliveClient } from '../test/support/clients/keep-alive.js';
import { type Service, startService, twoWorkers } from '../test/support/service/service.js';
import { type Memory, memoryOf } from './support/memory-of.js';
import { median, spread, sum } from './support/statistics.js';
import type { Row } from './support/table.js';

const targetMb = 210;
const targetAfterJobsMb = 240;
const targetAfterMuchMb = 250;
const restMs = 5000;
const reads = 100_000;
const fewJobs = 400;
const jobs = 1000;
const connections = 8;
const maxRounds = 3;

/** Measures the memory of an idle service: primary and two workers together, with the demo model. */
export async function memory(rounds: number): Promise<Row[]> {
  const fresh: Memory[] = [];
  const used: Memory[] = [];
  const usedMuch: Memory[] = [];
  for (let round = 0; round < Math.min(rounds, maxRounds); round++) {
    await using service = await startService({ env: { ...twoWorkers, MODEL_API_MAX_QUEUE: '100' } });
    fresh.push(await atRest(service));
    await work(service, 0, fewJobs);
    used.push(await atRest(service));
    await work(service, reads, jobs);
    usedMuch.push(await atRest(service));
  }
  return [
    rowOf('after the start', fresh, targetMb),
    rowOf(`after ${fewJobs} jobs`, used, targetAfterJobsMb),
    rowOf(`after ${reads} reads and ${jobs} jobs more`, usedMuch, targetAfterMuchMb),
  ];
}

/** Sends requests as fast as one client is served, in the order of a busy day. */
async function work(service: Service, reads: number, jobs: number): Promise<void> {
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

async function atRest(service: Service): Promise<Memory> {
  const pids = [service.pid, ...(await service.workers())];
  await sleep(restMs);
  const each = await Promise.all(pids.map(memoryOf));
  return { rssMb: sum(each.map(({ rssMb }) => rssMb)), pssMb: sum(each.map(({ pssMb }) => pssMb)) };
}

/**
 * Compares the sum of RSS with the target. RSS counts shared pages three times, so the result is too high rather than
 * too low.
 */
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

import { setTimeout as sleep } from 'node:timers/promises';
import { type Service, startWithProgram } from '../test/support/service.js';
import { Generator } from './support/generator.js';
import { type Memory, memoryOf } from './support/memory-of.js';
import { cat } from './support/one-shots.js';
import { median, spread, sum } from './support/statistics.js';
import type { Row } from './support/table.js';

const targetMb = 220;
const restMs = 2000;
const workMs = 2000;
const maxRounds = 3;

/** What the service itself keeps in memory when nobody asks for anything: the primary and two workers together. */
export async function memory(rounds: number): Promise<Row[]> {
  const fresh: Memory[] = [];
  const used: Memory[] = [];
  for (let round = 0; round < Math.min(rounds, maxRounds); round++) {
    await using service = await startWithProgram(cat.command[0]);
    fresh.push(await atRest(service));
    await work(service);
    used.push(await atRest(service));
  }
  return [rowOf('after the start', fresh), rowOf('after some hundred jobs', used)];
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
function rowOf(when: string, measured: readonly Memory[]): Row {
  const rss = measured.map(({ rssMb }) => rssMb);
  const pss = median(measured.map(({ pssMb }) => pssMb));
  return {
    question: `Memory of primary and two workers at rest, ${when}`,
    target: `≤ ${targetMb} MB`,
    measured: `RSS ${median(rss).toFixed(0)} MB (${spread(rss, 0)}); PSS ${pss.toFixed(0)} MB`,
    holds: median(rss) <= targetMb,
  };
}

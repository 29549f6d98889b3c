import { setTimeout as sleep } from 'node:timers/promises';
import { metric } from '../test/support/documents/exposition.js';
import { Collector } from '../test/support/service/collector.js';
import { type Service, startService, twoWorkers } from '../test/support/service/service.js';
import { ownProcessorMs } from './support/processor-time.js';
import { dropLog } from './support/service-log.js';
import { median, spread } from './support/statistics.js';
import type { Row } from './support/table.js';

const perSecond = 100;
/** Jobs of one slice. Short slices expose both services to the same other load of the machine. */
const jobs = 100;
const slices = 10;
const target = 0.03;
const env = {
  ...twoWorkers,
  MODEL_API_CLI: 'command',
  MODEL_API_CLI_COMMAND: 'cat',
  MODEL_API_MAX_CONCURRENT: '16',
  MODEL_API_MAX_QUEUE: '1000',
};

/** Measures the cost of traces and counts lost spans: runs equal jobs at the same pace without and with a collector. */
export async function traces(rounds: number): Promise<Row[]> {
  await using collector = await Collector.start();
  await using off = await startService({ env });
  await using on = await startService({ env: { ...env, ...collector.env } });
  for (const service of [off, on]) {
    dropLog(service);
    await costOf(service);
  }
  const ratios: number[] = [];
  for (let round = 0; round < rounds; round++) ratios.push(await ratioOf(off, on));
  const asked = (rounds * slices + 1) * jobs;
  await sleep(6000); // for the last batch
  const requests = collector.spans.filter(({ name }) => name === 'POST /ask').length;
  const dropped = await metric(on, 'trace_spans_total{result="dropped"}');
  const perJob = collector.spans.length / asked;
  return [
    {
      question: `Processor time of primary and workers with traces, ${perSecond} jobs/s, against the same without`,
      target: `≤ ${(1 + target).toFixed(2)}`,
      measured: `${median(ratios).toFixed(3)} (${spread(ratios, 3)})`,
      holds: median(ratios) <= 1 + target,
    },
    {
      question: `Spans lost of ${asked} jobs at ${perSecond}/s, ${perJob.toFixed(1)} spans each`,
      target: '0',
      measured: `${asked - requests} requests without a span, ${dropped} spans dropped`,
      holds: requests === asked && dropped === 0,
    },
  ];
}

/** Returns the ratio of the processor times of two services, over alternating slices. */
async function ratioOf(off: Service, on: Service): Promise<number> {
  const costs = new Map<Service, number>();
  for (let slice = 0; slice < slices; slice++) {
    const pair = slice % 2 === 0 ? [off, on] : [on, off];
    for (const service of pair) costs.set(service, (costs.get(service) ?? 0) + (await costOf(service)));
  }
  return (costs.get(on) ?? 0) / (costs.get(off) ?? 1);
}

/** Returns the processor time per job in milliseconds, without the programs. */
async function costOf(service: Service): Promise<number> {
  const pids = [service.pid, ...(await service.workers())];
  const before = await ownProcessorMs(pids);
  const startMs = performance.now();
  const answers: Promise<unknown>[] = [];
  for (let n = 0; n < jobs; n++) {
    await sleep(Math.max(0, startMs + (n * 1000) / perSecond - performance.now()));
    answers.push(service.post('/ask', { prompt: 'hello' }));
  }
  await Promise.all(answers);
  return ((await ownProcessorMs(pids)) - before) / jobs;
}

import { startService, twoWorkers } from '../test/support/service/service.js';
import { ownProcessorMs } from './support/processor-time.js';
import { dropLog } from './support/service-log.js';
import { median, spread } from './support/statistics.js';
import type { Row } from './support/table.js';

const targetMs = 5;
const scrapes = 100;

/**
 * Measures the processor time of all threads of the primary for GET /metrics, an upper bound for its blocked event
 * loop.
 */
export async function scrape(rounds: number): Promise<Row[]> {
  await using service = await startService({ env: twoWorkers });
  dropLog(service);
  for (const path of ['/version', '/health', '/models', '/nowhere']) await service.get(path);
  await service.post('/ask', { prompt: 'Hello.' });
  const costs: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const before = await ownProcessorMs([service.pid]);
    for (let count = 0; count < scrapes; count++) await service.get('/metrics');
    costs.push(((await ownProcessorMs([service.pid])) - before) / scrapes);
  }
  return [
    {
      question: 'Processor time of the primary for one GET /metrics, two workers',
      target: `≤ ${targetMs} ms`,
      measured: `${median(costs).toFixed(1)} ms (${spread(costs, 1)})`,
      holds: median(costs) <= targetMs,
    },
  ];
}

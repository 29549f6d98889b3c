import { setTimeout as sleep } from 'node:timers/promises';
import { startService, twoWorkers } from '../test/support/service/service.js';
import { ownProcessorMs, processorMs } from './support/processor-time.js';
import type { Row } from './support/table.js';

const targetPercent = 0.3;
/** Time after which all counters of the start have been reported. */
const restMs = 15_000;
const forMs = 45_000;

/**
 * Measures the processor time of an idle service. The readiness checks run the model CLI, which is counted separately.
 */
export async function idle(): Promise<Row[]> {
  await using service = await startService({ env: { ...twoWorkers, MODEL_API_STANDBY: '1' } });
  await service.log('readiness_checked');
  const pids = [service.pid, ...(await service.workers())];
  await sleep(restMs);
  const [own, all] = [await ownProcessorMs(pids), await processorMs(pids)];
  await sleep(forMs);
  const percent = (100 * ((await ownProcessorMs(pids)) - own)) / forMs;
  const withChecks = (100 * ((await processorMs(pids)) - all)) / forMs;
  return [
    {
      question: `Processor time of an idle service with two workers, over ${forMs / 1000} s`,
      target: `≤ ${targetPercent} % of a core`,
      measured: `${percent.toFixed(2)} %; with the model CLI that its readiness checks start ${withChecks.toFixed(2)} %`,
      holds: percent <= targetPercent,
    },
  ];
}

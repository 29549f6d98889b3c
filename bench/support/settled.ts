import { until } from '../../test/support/basics/until.js';
import type { Service } from '../../test/support/service/service.js';
import { processorMs } from './processor-time.js';

const quietMs = 150;

/** Resolves when `standby` processes wait, and the service's processes use no more processor time for their start. */
export async function settled(service: Service, standby: number): Promise<void> {
  let spentMs = Number.NaN;
  await until(async () => {
    const before = spentMs;
    if ((await waiting(service)) !== standby) return false;
    await new Promise((resolve) => setTimeout(resolve, quietMs));
    spentMs = await processorMs(await service.jobProcesses()).catch(() => Number.NaN);
    return spentMs === before;
  }, 'the shelf to be full and quiet');
}

async function waiting(service: Service): Promise<number> {
  const { body } = await service.get('/health');
  return (body.observability as { cli_processes: { standby: number } }).cli_processes.standby;
}

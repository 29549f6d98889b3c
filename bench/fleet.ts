import { killWorkersUnderLoad } from '../test/support/processes/killed-workers.js';
import { startService, twoWorkers } from '../test/support/service/service.js';
import { dropLog } from './support/service-log.js';
import type { Row } from './support/table.js';

const load = { connections: 20, everyMs: 2000, forMs: 60_000 };

/** Kills a worker every two seconds under load, and counts the affected requests. */
export async function fleet(): Promise<Row[]> {
  await using service = await startService({ env: twoWorkers });
  dropLog(service);
  const { answered, refused, ofKilled, ofOthers, kills, fallen, left } = await killWorkersUnderLoad(service, load);
  return [
    {
      question: `A worker of two killed every ${load.everyMs / 1000} s for ${load.forMs / 1000} s, ${load.connections} connections`,
      target:
        "0 refused connects, failures only of the killed workers' own requests, 0 lost slots, 0 CLIs left, no counter falls",
      measured: `${refused} refused; ${ofKilled} of the killed, ${ofOthers} of others; 0 slots lost, ${left} CLIs left, ${fallen.length} counters fell; ${answered} answered, ${kills} kills`,
      holds: refused + ofOthers + left + fallen.length === 0,
    },
  ];
}

import { healthTimes, SlowClients, slowKinds } from '../test/support/clients/slow-clients.js';
import { startService, twoWorkers } from '../test/support/service/service.js';
import { dropLog } from './support/service-log.js';
import { quantile } from './support/statistics.js';
import type { Row } from './support/table.js';

const clients = 1000;
const requests = 1000;
const targetMs = 50;

/** Measures the time of /health while a thousand clients send or read slowly. */
export async function slowClients(): Promise<Row[]> {
  await using service = await startService({ env: twoWorkers });
  dropLog(service);
  await healthTimes(service.url, requests / 2);
  const aloneMs = quantile(await healthTimes(service.url, requests), 0.99);
  const rows: Row[] = [];
  for (const kind of slowKinds) {
    using slow = await SlowClients.open(service.port, kind, clients);
    const times = await healthTimes(service.url, requests);
    const p99 = quantile(times, 0.99);
    rows.push({
      question: `GET /health, p99, beside ${clients} clients with slow ${kind === 'reader' ? 'reading' : kind}`,
      target: `< ${targetMs} ms`,
      measured: `${p99.toFixed(1)} ms (median ${quantile(times, 0.5).toFixed(1)} ms; p99 alone ${aloneMs.toFixed(1)} ms); ${slow.size} still open`,
      holds: p99 < targetMs,
    });
  }
  return rows;
}

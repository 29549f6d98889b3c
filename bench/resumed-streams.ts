import { get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Service, script, startService, twoWorkers } from '../test/support/service/service.js';
import { dropLog } from './support/service-log.js';
import { quantile } from './support/statistics.js';
import type { Row } from './support/table.js';

const targetMs = 100;
const attempts = 60;
const betweenMs = 50;
/** The model writes a word every few milliseconds for longer than the measurement takes. */
const order = 'drip 20000 5';
/** Time before the first attempt, in which the text grows. */
const settleMs = 5000;

/** Measures the time from a request that continues a stream to its first event, while the model writes. */
export async function resumedStreams(): Promise<Row[]> {
  const model = { MODEL_API_CLI: 'demo', MODEL_API_CLI_COMMAND: script('converses.pl') };
  await using service = await startService({ env: { ...model, ...twoWorkers } });
  dropLog(service);
  const { body } = await service.post('/v1/responses', { model: 'default', input: order, background: true });
  const job = String(body.job_id);
  await sleep(settleMs);
  const response = `/v1/responses/resp_${job}?stream=true&starting_after=`;
  const rows = [
    await rowOf(service, 'GET /v1/responses/{id}', (last) => [`${response}${last ?? 100}`, {}]),
    await rowOf(service, 'GET /jobs/{job_id}/events', (last) => [
      `/jobs/${job}/events`,
      { 'last-event-id': last ?? '1' },
    ]),
  ];
  await service.delete(`/jobs/${job}`);
  return rows;
}

type Attempt = (last: string | null) => [path: string, headers: Readonly<Record<string, string>>];

/** Measures one path. Each attempt continues after the event that the one before has received. */
async function rowOf(service: Service, path: string, attempt: Attempt): Promise<Row> {
  const delays: number[] = [];
  let last: string | null = null;
  for (let count = 0; count < attempts; count++) {
    const [address, headers] = attempt(last);
    const { ms, event } = await firstEvent(service.port, address, headers);
    last = /^id: (.+)$/m.exec(event)?.[1] ?? /"sequence_number":(\d+)/.exec(event)?.[1] ?? null;
    delays.push(ms);
    await sleep(betweenMs);
  }
  const [p50, p99] = [quantile(delays, 0.5), quantile(delays, 0.99)];
  return {
    question: `From ${path} to its first event, ${attempts} times during one answer, on a new connection`,
    target: `p50 ≤ ${targetMs} ms`,
    measured: `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`,
    holds: p50 <= targetMs,
  };
}

/** Requests a stream on a new connection, and closes it after the first whole event. */
function firstEvent(port: number, path: string, headers: Readonly<Record<string, string>>) {
  const begunMs = performance.now();
  return new Promise<{ readonly ms: number; readonly event: string }>((resolve, reject) => {
    const asked = get({ host: '127.0.0.1', port, path, headers, agent: false }, (answer) => {
      let received = '';
      answer.setEncoding('utf8').on('data', (text: string) => {
        received += text;
        const event = received.split('\n\n').find((block, at, all) => block.includes('data: ') && at < all.length - 1);
        if (event === undefined) return;
        resolve({ ms: performance.now() - begunMs, event });
        asked.destroy();
      });
      answer.once('end', () => reject(new Error(`answered ${received.slice(0, 200)}`)));
    });
    asked.on('error', reject);
  });
}

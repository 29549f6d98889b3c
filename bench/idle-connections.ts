import { setTimeout as sleep } from 'node:timers/promises';
import { KeepAliveClient } from '../test/support/clients/keep-alive.js';
import { startService } from '../test/support/service/service.js';
import { dropLog } from './support/service-log.js';
import type { Row } from './support/table.js';

const lanes = 60;
const pausesEach = 3;
const longestPauseS = 80;
/** Pauses that end when the service closes the connection, where a request can meet the close. */
const edgeS = { from: 73, to: 77 };
/** Longest sum of the pauses of one connection. */
const longestLaneS = 165;

/** Counts requests that are lost because the service closes their connection after a pause. Takes less than 3 minutes. */
export async function idleConnections(): Promise<Row[]> {
  await using service = await startService();
  dropLog(service);
  const results = await Promise.all(Array.from({ length: lanes }, () => failuresOfLane(service.port)));
  const requests = lanes * (pausesEach + 1);
  const failed = results.flat();
  const kinds = [...new Set(failed)].join(', ');
  return [
    {
      question: `Requests that fail, of ${requests} on ${lanes} connections with pauses of 0 to ${longestPauseS} s`,
      target: '0',
      measured: failed.length === 0 ? '0' : `${failed.length} (${kinds})`,
      holds: failed.length === 0,
    },
  ];
}

async function failuresOfLane(port: number): Promise<string[]> {
  using client = new KeepAliveClient(port, 1);
  const failures: string[] = [];
  for (const pauseS of [0, ...pauses()]) {
    await sleep(pauseS * 1000);
    const failure = await client.get('/health').then(
      ({ status }) => (status === 200 ? null : `status ${status}`),
      (error: NodeJS.ErrnoException) => error.code ?? error.message,
    );
    if (failure !== null) failures.push(failure);
  }
  return failures;
}

/** Returns random pauses in seconds, of which the first ends when the service closes the connection. */
function pauses(): number[] {
  const edge = edgeS.from + Math.random() * (edgeS.to - edgeS.from);
  const others = Array.from({ length: pausesEach - 1 }, () => Math.random() * longestPauseS);
  const sum = edge + others.reduce((all, pause) => all + pause, 0);
  return sum > longestLaneS ? pauses() : [edge, ...others];
}

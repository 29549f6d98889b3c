import { Agent } from 'node:http';
import { join } from 'node:path';
import { startService } from '../test/support/service/service.js';
import { dropLog } from './support/service-log.js';
import { readStream } from './support/sse-client.js';
import { quantile } from './support/statistics.js';
import type { Row } from './support/table.js';

const targets = { p50: 2, p99: 15 };
const turns = 500;
const warmUpTurns = 100;
const clock = join(__dirname, '..', '..', 'bench', 'programs', 'tells-the-time.js');

/** Measures the time from the CLI's first delta in its stdout to the client's socket, which is the relay's part. */
export async function firstDelta(): Promise<Row[]> {
  await using service = await startService({
    env: {
      MODEL_API_CLI: 'claude',
      MODEL_API_CLI_COMMAND: `'${process.execPath}' '${clock}'`,
      MODEL_API_LIVE_SESSIONS: '4',
    },
  });
  dropLog(service);
  const agent = new Agent({ keepAlive: true });
  const delays: number[] = [];
  let id: unknown;
  for (let turn = 0; turn < warmUpTurns + turns; turn++) {
    const body = { message: 'What time is it?', ...(id !== undefined && { conversation_id: id }) };
    const { firstDeltaAt, firstDelta, done } = await readStream(agent, service.port, '/chat', body);
    id = done.conversation_id;
    if (turn >= warmUpTurns) delays.push(Number(firstDeltaAt - BigInt(firstDelta)) / 1e6);
  }
  agent.destroy();
  return [rowOf(delays)];
}

function rowOf(delays: readonly number[]): Row {
  const [p50, p99] = [quantile(delays, 0.5), quantile(delays, 0.99)];
  return {
    question: `From the CLI's first delta to the client's socket, ${turns} turns in live sessions`,
    target: `p50 ≤ ${targets.p50} ms, p99 ≤ ${targets.p99} ms`,
    measured: `p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms, longest ${Math.max(...delays).toFixed(1)} ms`,
    holds: p50 <= targets.p50 && p99 <= targets.p99,
  };
}

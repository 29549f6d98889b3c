import { setTimeout as sleep } from 'node:timers/promises';
import { KeepAliveClient } from '../test/support/clients/keep-alive.js';
import { startWithProgram } from '../test/support/service/service.js';
import { memoryOf } from './support/memory-of.js';
import type { Row } from './support/table.js';

const settingMb = 128;
const maxRatio = 1.3;
/** Factor of the memory limit to fill, so that conversations are also evicted for some time. */
const fill = 1.2;
/** Text that makes the service load the token counter, whose memory does not belong to conversations. */
const warmUpBytes = 4_000_000;
const restMs = 8000;
const env = {
  MODEL_API_CONVERSATION_MEMORY_MB: String(settingMb),
  MODEL_API_MAX_CONVERSATIONS: '100000',
  MODEL_API_MAX_CONCURRENT: '8',
};

/** Makers of a message text with a length in bytes. */
const kinds: Readonly<Record<string, (bytes: number) => string>> = {
  ASCII: (bytes) => words(bytes),
  'one … in each message': (bytes) => `…${words(bytes - 3)}`,
};
const messageBytes = 200_000;

/** Measures how much the primary's memory grows when conversations use the whole limit. */
export async function conversationMemory(): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [kind, text] of Object.entries(kinds)) {
    rows.push(await rowFor(`${kind}, ${messageBytes / 1000} kB each`, text(messageBytes)));
  }
  return rows;
}

async function rowFor(what: string, message: string): Promise<Row> {
  await using service = await startWithProgram('/bin/echo ok', env);
  await fillUp(service.port, message, warmUpBytes);
  await sleep(restMs);
  const { rssMb: before } = await memoryOf(service.pid);
  await fillUp(service.port, message, fill * settingMb * 1024 ** 2);
  const { rssMb: atWork } = await memoryOf(service.pid);
  await sleep(restMs);
  const { rssMb: after } = await memoryOf(service.pid);
  const ratio = (after - before) / settingMb;
  return {
    question: `Memory of ${settingMb} MB of conversations: ${what}`,
    target: `≤ ${maxRatio}`,
    measured: `${ratio.toFixed(2)}: RSS of the primary ${after.toFixed(0)} MB, ${before.toFixed(0)} MB before, ${atWork.toFixed(0)} MB at work`,
    holds: ratio <= maxRatio,
  };
}

async function fillUp(port: number, message: string, bytes: number): Promise<void> {
  using client = new KeepAliveClient(port, 8);
  let left = Math.ceil(bytes / Buffer.byteLength(message));
  const lane = async () => {
    while (left-- > 0) {
      const { status } = await client.post('/chat', { message });
      if (status !== 200) throw new Error(`a turn was answered with ${status}`);
    }
  };
  await Promise.all(Array.from({ length: 8 }, lane));
}

/** Makes a text of words. Counting tokens is much faster for words than for one long run of letters. */
function words(bytes: number): string {
  return 'some words '.repeat(Math.ceil(bytes / 11)).slice(0, bytes);
}

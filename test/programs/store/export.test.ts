import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { prepareFile } from '../../../src/features/sqlite/files.js';
import { migrations } from '../../../src/features/sqlite/schema.js';
import { SqliteStore } from '../../../src/features/sqlite/sqlite-store.js';
import { SqliteThread } from '../../../src/features/sqlite/sqlite-thread.js';
import type { ClientText } from '../../../src/shared/client.js';
import { systemClock } from '../../../src/shared/clock.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { headersOf, writeNamedKeys } from '../../support/doors/named-keys.js';
import { type Service, startService } from '../../support/service/service.js';

const count = 10_000;
const atOnce = 500;
const answerBytes = 10_000;
/** Much less than all answers together. */
const maxGrowthBytes = 64 * 1024 * 1024;

/** Writes a file with many conversations of one client. */
async function fill(path: string, client: ClientText): Promise<void> {
  await prepareFile(path);
  const thread = new SqliteThread(path, [], migrations);
  await thread.startThread();
  const store = new SqliteStore(path, thread, [], systemClock);
  await store.open(async () => {});
  const now = Date.now();
  for (let from = 0; from < count; from += atOnce) {
    const turns = Array.from({ length: atOnce }, (_, index) => {
      const texts = { user: `question ${from + index}`, assistant: 'ü'.repeat(answerBytes / 2) };
      const times = { createdAt: now + from + index, messageCount: 2, totalTokens: 3 };
      const change = { type: 'turn', id: `c${from + index}`, client, system: null, images: [], figures: null } as const;
      return store.conversations.commitChange({ ...change, ...texts, ...times });
    });
    await Promise.all(turns);
  }
  await store.close();
}

async function memoryOf(pid: number): Promise<number> {
  const [, kilobytes = ''] = /^VmRSS:\s+(\d+) kB/m.exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) * 1024;
}

/** Reads an export. Returns its last line, the digest of the others, and by how much the processes grew meanwhile. */
async function read(service: Service, onPiece: (bytes: number) => Promise<void>) {
  const pids = [service.pid, ...(await service.workers())];
  const before = await Promise.all(pids.map(memoryOf));
  const response = await fetch(`${service.url}/export`, { headers: headersOf('alice') });
  const hash = createHash('sha256');
  let [bytes, rest, growth, measuredAt] = [0, Buffer.alloc(0), 0, 0];
  for await (const piece of response.body as unknown as AsyncIterable<Uint8Array>) {
    bytes += piece.length;
    const all = Buffer.concat([rest, piece]);
    const end = all.lastIndexOf('\n', all.length - 2) + 1; // the last line has the digest of those before it
    hash.update(all.subarray(0, end));
    rest = all.subarray(end);
    await onPiece(bytes);
    if (bytes - measuredAt < 4_000_000) continue;
    measuredAt = bytes;
    const now = await Promise.all(pids.map(memoryOf));
    growth = Math.max(growth, ...now.map((each, index) => each - (before[index] ?? 0)));
  }
  return {
    end: JSON.parse(String(rest)) as { counts: object; sha256: string },
    digest: hash.digest('hex'),
    bytes,
    growth,
  };
}

it('An export of 10,000 conversations needs little memory, lets others work, and ends with its client', async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, 'store.db');
  await using named = await writeNamedKeys();
  await fill(path, 'key alice');
  const limits = { MODEL_API_MAX_CONVERSATIONS: '20000', MODEL_API_AUDIT_FILE: join(folder.path, 'audit.jsonl') };
  await using service = await startService({ env: { ...named.env, ...limits, MODEL_API_STORE: `sqlite:${path}` } });

  const left = new AbortController();
  const begun = await fetch(`${service.url}/export`, { headers: headersOf('alice'), signal: left.signal });
  await (begun.body as ReadableStream<Uint8Array>).getReader().read();
  left.abort();

  let answered = 0;
  const { end, digest, bytes, growth } = await read(service, async (sofar) => {
    if (sofar < 10_000_000 * (answered + 1) || answered === 5) return;
    expect((await service.post('/ask', { prompt: 'Hello' }, headersOf('bob'))).status).toBe(200);
    answered++;
  });
  expect(end).toMatchObject({ counts: { conversation: count }, sha256: digest });
  expect([answered, bytes > count * answerBytes]).toEqual([5, true]);
  process.stderr.write(`export of ${Math.round(bytes / 1e6)} MB: processes grew by ${Math.round(growth / 1e6)} MB\n`);
  expect(growth).toBeLessThan(maxGrowthBytes);
  const { records } = (await service.get('/audit', headersOf('operator'))).body as { records: { act: string }[] };
  expect(records.filter(({ act }) => act === 'client_exported')).toHaveLength(1);
}, 240_000);

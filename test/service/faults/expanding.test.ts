import { setMaxListeners } from 'node:events';
import { startHostileSearch } from '../../support/agents/hostile-search.js';
import type { SearchMcpServer } from '../../support/agents/search-mcp-server.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { createBatch, promptLine, untilEnded, upload } from '../../support/clients/batches.js';
import { type Holder, keyOf, writeHolders } from '../../support/clients/dripping-bodies.js';
import { type ExpandingKind, expandingRequests } from '../../support/clients/expanding.js';
import { flowingUpload, silentUpload } from '../../support/clients/hostile-uploads.js';
import { memoryOf, workersOf } from '../../support/processes/processes.js';
import { type Service, startService, twoWorkers } from '../../support/service/service.js';

const limits = { MODEL_API_MAX_CONCURRENT: '4', MODEL_API_MAX_QUEUE: '100', MODEL_API_FILES: 'memory' };
const maxProcessBytes = 1024 ** 3;

const headersOf = (holder: Holder) => ({ 'x-api-key': keyOf(holder) });
const modest = headersOf('modest');

let folder: TemporaryFolder;
let search: SearchMcpServer;
let service: Service;
let workers: readonly number[];

beforeAll(async () => {
  folder = await temporaryFolder();
  search = await startHostileSearch();
  const holders = await writeHolders(folder, 'search=100000/day');
  const env = { ...twoWorkers, ...limits, ...holders, MODEL_API_SEARCH: `mcp:${search.url}#find` };
  service = await startService({ env });
  workers = await workersOf(service.pid);
});
afterAll(async () => {
  await service.stop();
  await search[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

/**
 * Kinds with the number of simultaneous requests and the allowed statuses. Clients disconnect after four
 * answers.
 */
const kinds: readonly (readonly [ExpandingKind, number, readonly number[]])[] = [
  ['reads of a stored response of 8 MB', 70, [200]],
  ['lists of an input of 2 MB', 70, [200]],
  ['requests that continue a text of 60 MB', 32, [400]],
  ['requests that continue a text of 8 MB', 8, [200, 429]],
  ['requests with 10,000 references to a stored item', 4, [413]],
  ['requests with 10,000 references to an image of 1 MB', 4, [413]],
  ['requests that refer to a PDF of 11 MB', 32, [200, 429]],
  ['requests with arguments of five million lists', 2, [400]],
  ['requests with arguments 5,000 levels deep', 4, [400]],
  ['requests with 20 references to a PDF that takes long to inspect', 8, [400]],
  ['requests with 20 PDFs that take long to inspect', 8, [400, 429]],
  ['requests with a PDF whose page has 20 MB', 4, [400, 502, 500]],
  ['requests with a tool of 5,500 dependencies', 8, [200]],
  ['requests with 10 tools of 1,000 properties', 8, [200]],
  ['searches whose result has 1 MB of text', 8, [200]],
  ['searches whose result has 4,000 pages', 8, [200]],
  ['searches whose result arrives in pieces of one byte', 8, [200]],
  ['searches whose result never ends', 4, [200]],
  ['searches whose result is 1 MB of brackets', 8, [200]],
  ['forms with a million empty parts', 16, [400]],
  ['forms with a million parts without headers', 16, [400]],
  ['forms with 160,000 fields', 16, [400]],
  ['forms with a header of 10 MB', 16, [400]],
  ['forms in pieces of one byte', 8, [200, 429]],
  ['uploads that flow slowly', 32, [200]],
  ['batches of four million lines', 4, [400]],
  ['batches of 30 MB of blank lines', 4, [200]],
  ['batches of a line of 60 MB', 4, [200]],
  ['batches of four lines of 15 MB', 4, [200]],
  ['batches of four lines of 15 MB that are cancelled', 4, [200]],
  ['batches of 2,000 lines', 8, [200, 400]],
  ['batches of 20,000 lines that are cancelled', 8, [200, 400]],
];

/** Requests of other clients, one after the other, while `isOver` is false, and each at least twice. */
async function others(isOver: () => boolean): Promise<number[]> {
  const statuses: number[] = [];
  for (let count = 0; count < 2 || !isOver(); count++) {
    statuses.push((await service.post('/ask', { prompt: 'hello' }, modest)).status);
    statuses.push((await service.get('/health')).status);
  }
  return statuses;
}

/** A batch of another client, with its result. */
async function otherBatch(): Promise<object> {
  const { body: file } = await upload(service, promptLine('small', 'Hello'), { purpose: 'batch' }, modest);
  const { body } = await createBatch(service, file.id, {}, modest);
  const { status, request_counts } = await untilEnded(service, body.id, 60_000, modest);
  return { status, request_counts };
}

async function expectUnharmed(): Promise<void> {
  expect(await workersOf(service.pid)).toEqual(workers);
  const sizes = await Promise.all([service.pid, ...workers].map(memoryOf));
  for (const { peakBytes } of sizes) expect(peakBytes).toBeLessThan(maxProcessBytes);
}

describe('A small request that could expand in the service', () => {
  it.each(kinds)(
    'crashes no process and fails no job of other clients: %s',
    async (kind, count, statuses) => {
      const send = await expandingRequests[kind]({ url: service.url, headers: headersOf('greedy') });
      const leaving = new AbortController();
      setMaxListeners(0, leaving.signal);
      const sent = Array.from({ length: count }, () => send(leaving.signal));
      let isOver = false;
      const answered = others(() => isOver);
      const batch = kind.startsWith('batches') ? otherBatch() : null;
      try {
        for (const status of await Promise.all(sent.slice(0, 4))) expect(statuses).toContain(status);
        if (batch !== null)
          expect(await batch).toEqual({ status: 'completed', request_counts: { total: 1, completed: 1, failed: 0 } });
      } finally {
        isOver = true;
        leaving.abort();
        await Promise.allSettled([...sent, batch]);
      }
      expect(new Set(await answered)).toEqual(new Set([200]));
      await expectUnharmed();
    },
    90_000,
  );

  it('may be an upload that flows for any time, but not one that is silent', async () => {
    const asker = { url: service.url, headers: headersOf('greedy') };
    const [flowing, silent] = [flowingUpload(asker, 34_000, 500), silentUpload(asker)];
    let isOver = false;
    const answered = others(() => isOver);
    const statuses = await Promise.all([flowing(), ...Array.from({ length: 32 }, () => silent())]);
    isOver = true;
    expect(statuses).toEqual([200, ...Array.from({ length: 32 }, () => 408)]);
    expect(new Set(await answered)).toEqual(new Set([200]));
    await expectUnharmed();
  }, 90_000);
});

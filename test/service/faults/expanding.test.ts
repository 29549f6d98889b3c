import { type ExpandingKind, expandingRequests } from '../../support/clients/expanding.js';
import { type Service, startService, twoWorkers } from '../../support/service/service.js';

const limits = { MODEL_API_MAX_CONCURRENT: '4', MODEL_API_MAX_QUEUE: '100', MODEL_API_FILES: 'memory' };

let service: Service;
let workers: readonly number[];

beforeAll(async () => {
  service = await startService({ env: { ...twoWorkers, ...limits } });
  workers = await service.workers();
});
afterAll(() => service.stop());

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
];

describe('A small request that could expand in the service', () => {
  it.each(kinds)('crashes no process and fails no job of other clients: %s', async (kind, count, statuses) => {
    const send = await expandingRequests[kind]({ url: service.url, headers: {} });
    const others = service.post('/ask', { prompt: 'hello' });
    const leaving = new AbortController();
    const sent = Array.from({ length: count }, () => send(leaving.signal));
    for (const status of await Promise.all(sent.slice(0, 4))) expect(statuses).toContain(status);
    leaving.abort();
    await Promise.allSettled(sent);
    expect((await others).status).toBe(200);
    expect(await service.workers()).toEqual(workers);
  });
});

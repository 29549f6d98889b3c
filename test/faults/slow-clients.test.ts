import { expectSound } from '../support/door.js';
import { type Service, startService, twoWorkers } from '../support/service.js';
import { healthTimes, SlowClients, slowKinds } from '../support/slow-clients.js';
import { until } from '../support/until.js';

const clients = 1000;
/** 50 ms on a quiet machine, as `npm run bench -- slow-clients` measures; other tests run beside this one. */
const limitMs = 500;

let service: Service;
beforeAll(async () => {
  service = await startService({ env: twoWorkers });
});
afterAll(() => service.stop());

describe('A thousand clients that waste time', () => {
  it.each(slowKinds)('do not slow down the others: slow %s', async (kind) => {
    using slow = await SlowClients.open(service.port, kind, clients);
    expect(slow.size).toBeGreaterThan(clients * 0.9);
    const times = (await healthTimes(service.url, 200)).toSorted((a, b) => a - b);
    expect(times[197]).toBeLessThan(limitMs);
    expect((await service.post('/ask', { prompt: 'Are you there?' })).status).toBe(200);
  });

  it('are given up when their time is over, and cost nothing afterwards', async () => {
    using slow = await SlowClients.open(service.port, 'headers', clients);
    await until(() => slow.size === 0, 'all to be closed', 25_000); // 10 s for the headers
    await expectSound(service);
    const { text } = await service.get('/metrics');
    expect(/^model_api_http_requests_in_flight (\d+)$/m.exec(text)?.[1]).toBe('1'); // this very scrape
  });
});

import { until } from '../../support/basics/until.js';
import { healthTimes, SlowClients, slowKinds } from '../../support/clients/slow-clients.js';
import { expectSound } from '../../support/doors/door.js';
import { type Service, startService, twoWorkers } from '../../support/service/service.js';

const clients = 1000;
/**
 * The documented limit is 50 ms on a quiet machine (`npm run bench -- slow-clients`); other tests run at the same time.
 */
const limitMs = 500;
const maxTimesAlone = 10;

function p99Of(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.99) - 1] ?? Number.NaN;
}

let service: Service;
beforeAll(async () => {
  service = await startService({ env: twoWorkers });
});
afterAll(() => service.stop());

describe('A thousand slow clients', () => {
  it.each(slowKinds)('do not slow down other clients: slow %s', async (kind) => {
    const aloneMs = p99Of(await healthTimes(service.url, 100));
    using slow = await SlowClients.open(service.port, kind, clients);
    expect(slow.size).toBeGreaterThan(clients * 0.9);
    expect(p99Of(await healthTimes(service.url, 200))).toBeLessThan(Math.max(limitMs, maxTimesAlone * aloneMs));
    expect((await service.post('/ask', { prompt: 'Are you there?' })).status).toBe(200);
  });

  it('are disconnected at their time limit, and use no resources afterwards', async () => {
    using slow = await SlowClients.open(service.port, 'headers', clients);
    await until(() => slow.size === 0, 'all to be closed'); // 10 s for the headers
    await expectSound(service);
    await until(async () => {
      const { text } = await service.get('/metrics');
      return /^model_api_http_requests_in_flight 1$/m.test(text); // this scrape itself
    }, 'no request in flight');
  });
});

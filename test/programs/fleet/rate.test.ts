import { describeWith } from '../../support/basics/needs.js';
import { haproxy } from '../../support/service/haproxy.js';
import { HostFleet } from '../../support/service/host-fleet.js';
import { askMany, askOnce, byStatus } from '../../support/service/load.js';
import { startRedis } from '../../support/stores/redis-server.js';

const cap = 30;

describeWith(haproxy)('The rate limit of one client across three hosts', () => {
  it('is one limit: of 100 requests, exactly the limit passes', async () => {
    await using redis = await startRedis();
    const rate = { MODEL_API_RATE_LIMIT_MAX_REQUESTS: String(cap), MODEL_API_RATE_LIMIT_WINDOW_SECONDS: '600' };
    // Few programs at once: a host that gets no answer of Redis within 200 ms counts by itself.
    const program = { MODEL_API_CLI: 'command', MODEL_API_CLI_COMMAND: 'cat', MODEL_API_MAX_CONCURRENT: '1' };
    await using fleet = await HostFleet.start({ env: { ...program, ...rate, MODEL_API_STORE: redis.url } });
    const fates = await askMany({ url: fleet.url, count: 100, clients: 6 });
    expect(byStatus(fates)).toEqual({ 200: cap, 429: 100 - cap });
    for (const { service } of fleet.hosts) {
      expect(await askOnce(service.url, 'One more')).toMatchObject({ status: 429, body: { error: 'rate_limited' } });
    }
    const hosts = await Promise.all(fates.map(({ body }) => fleet.answerOf(String(body.request_id))));
    expect(new Set(hosts.map(({ host }) => host.name)).size).toBe(3);
  });
});

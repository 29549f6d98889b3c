import { workerSettings } from '../../../../src/primary/api/worker-settings.js';
import type { Addresses } from '../../../../src/primary/workers/addresses.js';
import { loadConfig } from '../../../../src/shared/config/config.js';
import { workerSettingsSchema } from '../../../../src/shared/ipc/protocol.js';

const keys = [
  {
    name: 'ada',
    client: 'key ada' as const,
    digest: 'ab12',
    scopes: ['ask' as const],
    isCapped: false,
    hasSubclients: false,
    expiresAt: null,
  },
];
const runtimePlaces = { runtimeParent: '/run', cgroupParent: null };

async function settingsOf(env: Record<string, string> = {}, addressCount = 1, ports: Addresses['ports'] = []) {
  return workerSettings(
    await loadConfig(env, async () => ''),
    { keys, personLines: [] },
    { fds: Array(addressCount).fill(9), ports },
    { runtimePlaces, logStyle: 'plain' },
    { phase: 'starting', firstStartMs: 1, modelAbilities: ['batch'] },
  );
}

describe('The settings of a worker', () => {
  it('match the schema that a worker expects', async () => {
    const settings = await settingsOf();
    expect(workerSettingsSchema.parse(settings)).toEqual(settings);
    expect(settings).toMatchObject({ phase: 'starting', runtimePlaces, logStyle: 'plain' });
  });

  it('contain the inherited addresses: the descriptor numbers after its streams and its channel', async () => {
    expect((await settingsOf({}, 1)).fds).toEqual([5]);
    expect(await settingsOf({}, 3)).toMatchObject({ fds: [5, 6, 7], portFds: {} });
    const ports = ['one', 'other'].map((name, index) => ({
      ...{ name, clients: name, address: { host: '127.0.0.1', port: 11434 + index } },
    }));
    expect(await settingsOf({}, 3, ports)).toMatchObject({ fds: [5, 6, 7], portFds: { one: 6, other: 7 } });
  });

  it('contain no key in clear text, and no credential of the CLI', async () => {
    const secrets = { MODEL_API_KEY: 'a-long-secret-key', MODEL_CODE_OAUTH_TOKEN: 'a-long-secret-token' };
    const settings = await settingsOf(secrets);
    expect(settings.keys).toBe(keys);
    expect(JSON.stringify(settings)).not.toContain('secret');
  });

  it.each([
    ['30', 10_000],
    ['1', 1000],
    ['0', 1000],
  ])('contain how long an answer may remain unread in a drain of %s s', async (MODEL_API_DRAIN_TIMEOUT_SECONDS, ms) => {
    expect((await settingsOf({ MODEL_API_DRAIN_TIMEOUT_SECONDS })).drainUnreadMs).toBe(ms);
  });

  it('contain whether a rate limit is configured', async () => {
    expect((await settingsOf({ MODEL_API_RATE_LIMIT_MAX_REQUESTS: '0' })).isCapped).toBe(false);
    expect((await settingsOf({ MODEL_API_RATE_LIMIT_MAX_REQUESTS: '30' })).isCapped).toBe(true);
  });

  it('contain the allowed hosts, or null if any host is allowed', async () => {
    expect((await settingsOf()).allowedHosts).toEqual(['localhost', '127.0.0.1', '::1']);
    const open = { MODEL_API_HOST: '0.0.0.0', MODEL_API_KEY: 'a-long-secret-key' };
    expect((await settingsOf(open)).allowedHosts).toBeNull();
    const configured = await settingsOf({ MODEL_API_ALLOWED_HOSTS: 'Relay.example.org' });
    expect(configured.allowedHosts).toEqual(['relay.example.org']);
  });
});

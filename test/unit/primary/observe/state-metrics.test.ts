import { Registry } from 'prom-client';
import { FileFaults } from '../../../../src/primary/access/file-faults.js';
import { FeatureHooks } from '../../../../src/primary/features/feature-hooks.js';
import { addServiceGauges, type GaugeSources } from '../../../../src/primary/observe/state-metrics.js';
import { loadConfig } from '../../../../src/shared/config/config.js';
import type { Phase } from '../../../../src/shared/phase.js';
import { loginOf } from '../../../support/agents/logins.js';
import { Exposition } from '../../../support/documents/exposition.js';

/** Creates a service in this phase, with constant figures. */
async function createService(phase: Phase = 'ready') {
  const registry = new Registry();
  const slots = { active: 2, waiting: 5, limits: { maxActive: 4, maxWaiting: 100, maxWaitingBytes: 0 } };
  const counts = { conversations: 3, bytes: 400, tokens: 90, created: 8 };
  const pool = { counts: () => ({ standby: 1, renewed: 0, live: 2, tools: 0, busy: 3, stopping: 4 }) };
  const circuits = { openFor: { quota: 1, auth: 0 }, openings: { quota: 3, auth: 0 } };
  const health = { circuits, windows: { utilization: { five_hour: 0.9 } } };
  const sources = {
    config: await loadConfig({ MODEL_API_WORKERS: '2' }, async () => ''),
    host: {
      product: { version: '1.2.3', commit: null },
      termination: { containments: { means: 'process-group' } },
      logWriteErrors: () => 6,
      defects: { counts: { primary: 0, worker: 2 } },
    },
    clis: [{ ...loginOf('demo'), pool, health }],
    room: slots,
    batches: { running: 1 },
    conversations: { counts },
    workers: { counts: () => ({ starting: 0, ready: 2, stopping: 1 }) },
    supervisor: { phase },
    store: { isUp: phase !== 'stopped', responses: { counts: { count: 12, bytes: 3400 } } },
    fileFaults: new FileFaults(),
    features: new FeatureHooks([]),
  };
  addServiceGauges(registry, sources as unknown as GaugeSources);
  return { slots, read: async () => new Exposition(await registry.metrics()) };
}

describe('The state of the service in a scrape', () => {
  it('is read from the components at each scrape', async () => {
    const { slots, read } = await createService();
    const first = await read();
    const names = ['jobs_active', 'jobs_queued', 'jobs_limit', 'queue_limit', 'conversations', 'conversation_bytes'];
    expect(names.map((name) => first.value(name))).toEqual([2, 5, 4, 100, 3, 400]);
    expect(first.value('log_write_errors_total')).toBe(6);
    expect(first.value('store_up')).toBe(1);
    expect(first.value('breaker_open{cli="demo",reason="quota"}')).toBe(1);
    expect(first.value('breaker_openings_total{cli="demo",reason="quota"}')).toBe(3);
    expect(first.value('quota_utilization_ratio{cli="demo",window="five_hour"}')).toBe(0.9);
    slots.active = 0;
    const second = await read();
    expect([second.value('jobs_active'), second.value('log_write_errors_total')]).toEqual([0, 6]);
  });

  it('includes what workers and processes are doing', async () => {
    const scrape = await (await createService()).read();
    expect(scrape.value('workers{state="stopping"}')).toBe(1);
    expect(scrape.value('cli_processes{cli="demo",state="live"}')).toBe(2);
  });

  it.each<[Phase, number]>([
    ['starting', 0],
    ['ready', 0],
    ['draining', 1],
  ])('includes whether the service drains: %s', async (phase, draining) => {
    expect((await (await createService(phase)).read()).value('draining')).toBe(draining);
  });

  it('includes by which means processes are ended, and by which they are not', async () => {
    const scrape = await (await createService()).read();
    expect(scrape.value('termination_means{means="process-group"}')).toBe(1);
    expect(scrape.value('termination_means{means="cgroup"}')).toBe(0);
  });

  it('includes the version and the configuration', async () => {
    const scrape = await (await createService()).read();
    expect(scrape.sum('build_info', { version: '1.2.3', commit: 'unknown' })).toBe(1);
    expect(scrape.sum('config_info', { workers: '2', adapter: 'demo', strict_health: 'false' })).toBe(1);
  });
});

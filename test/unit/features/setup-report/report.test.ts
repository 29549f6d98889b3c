import { type SetupSources, setupReportOf } from '../../../../src/features/setup-report/report.js';
import { features } from '../../../../src/features.js';
import { setupReport } from '../../../../src/shared/api/setup.js';
import { loadConfig } from '../../../../src/shared/config/config.js';
import type { ReadinessEntry } from '../../../../src/shared/health.js';

const ready: ReadinessEntry = {
  status: 'ready',
  checkedAt: Date.UTC(2026, 0, 1),
  durationMs: 40,
  trigger: 'interval',
  cli: 'demo',
  adapter: 'demo',
  version: '1.0',
  error: null,
};

async function reportWith(env: Record<string, string>, check: ReadinessEntry) {
  const config = await loadConfig(env, async () => '', undefined, features);
  const termination = { containments: { means: 'cgroup' }, fault: null };
  const sources = {
    config,
    host: { termination },
    url: 'http://127.0.0.1:5051',
    portUrls: {},
    keys: config.apiKeys.map(({ name }) => name),
    clis: [{ name: 'demo', health: { checks: { current: check } } }],
    commandOf: () => ['/bin/model'],
    models: { count: 1, models: [{ id: 'eliza', name: 'Eliza', default: true }] },
    warnings: ['beware'],
  };
  return setupReportOf(sources as unknown as SetupSources);
}

describe('The set-up report', () => {
  it('shows the active settings, as its schema defines, and keys by their names', async () => {
    const report = await reportWith({ MODEL_API_KEY: 'a-secret-of-thirty-two-characters' }, ready);
    expect(setupReport.parse(report)).toEqual(report);
    expect(report).toMatchObject({
      keys: ['default'],
      needs_key: true,
      model_cli: { adapter: 'demo', command: ['/bin/model'], version: '1.0', ready: true, error: null },
      models: [{ id: 'eliza', default: true }],
      termination: { means: 'cgroup', no_cgroup: null },
      store: { kind: 'memory', place: null },
      warnings: ['beware'],
    });
    expect(JSON.stringify(report)).not.toContain('secret');
  });

  it('shows where conversations are stored', async () => {
    const { store } = await reportWith({ MODEL_API_STORE: 'sqlite:/var/lib/prompt-relay/store.db' }, ready);
    expect(store).toEqual({ kind: 'sqlite', place: '/var/lib/prompt-relay/store.db' });
  });

  it.each<[string, Partial<ReadinessEntry>, string | null]>([
    ['the fault that the last check has found', { status: 'not_ready', error: 'not logged in' }, 'not logged in'],
    ['that there was none yet', { status: 'unknown', checkedAt: null }, 'no readiness check has ended yet'],
  ])('shows %s', async (_, check, error) => {
    expect((await reportWith({}, { ...ready, ...check })).model_cli).toMatchObject({ ready: false, error });
  });
});

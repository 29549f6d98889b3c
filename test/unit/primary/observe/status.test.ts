import { FileFaults } from '../../../../src/primary/access/file-faults.js';
import { Status, type StatusSources } from '../../../../src/primary/observe/status.js';
import { healthBody, historyBody } from '../../../../src/shared/api/health.js';
import { versionBody } from '../../../../src/shared/api/version.js';
import type { ReadinessEntry, RenewalFault } from '../../../../src/shared/health.js';
import type { Phase } from '../../../../src/shared/phase.js';
import { loginOf } from '../../../support/agents/logins.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';

const ready: ReadinessEntry = {
  status: 'ready',
  checkedAt: Date.UTC(2026, 0, 1, 12),
  durationMs: 40,
  trigger: 'start',
  cli: 'demo',
  adapter: 'demo',
  version: '1.0',
  error: null,
};
const notReady: ReadinessEntry = { ...ready, status: 'not_ready', error: 'nobody is logged in' };
const unknown: ReadinessEntry = { ...ready, status: 'unknown', checkedAt: null, version: null };

type Health = StatusSources['clis'][0]['health'];

interface BreakerState {
  readonly status: Health['circuits']['status'];
  readonly windows: Health['windows']['current'];
}

interface Options {
  readonly phase?: Phase;
  readonly readiness?: ReadinessEntry;
  readonly strictHealth?: boolean;
  readonly isStoreUp?: boolean;
  readonly breaker?: BreakerState;
  readonly renewalFaults?: readonly RenewalFault[];
}

const closed: BreakerState = {
  status: [{ state: 'closed', model: null, reason: null, since: null, until: null }],
  windows: [],
};
const held: BreakerState = {
  status: [
    { state: 'open', model: null, reason: 'quota', since: Date.UTC(2026, 0, 1), until: Date.UTC(2026, 0, 2) },
    { state: 'half_open', model: 'opus', reason: 'quota', since: Date.UTC(2026, 0, 1), until: null },
  ],
  windows: [{ name: 'five_hour', status: 'rejected', utilization: 1, resetsAt: Date.UTC(2026, 0, 2) }],
};

function createStatus({
  phase = 'ready',
  readiness = ready,
  strictHealth = false,
  isStoreUp = true,
  breaker = closed,
  renewalFaults = [],
}: Options = {}) {
  const clock = new FakeClock();
  const cli = {
    ...loginOf('demo'),
    adapter: { name: 'demo' },
    program: { version: '1.0' },
    pool: { counts: () => ({ standby: 1, renewed: 0, live: 2, tools: 0, busy: 3, stopping: 4 }), renewalFaults },
    health: {
      shortage: null,
      circuits: { status: breaker.status },
      windows: { current: breaker.windows },
      checks: { current: readiness, history: () => [unknown, readiness] },
    },
    publicName: (model: string | null) => model,
  };
  const sources = {
    supervisor: { phase, drainEndsAt: null },
    room: { active: 2, waiting: 5, limits: { maxActive: 4, maxWaiting: 100 }, fullSince: Date.UTC(2026, 0, 1) },
    jobEntry: { recentlyRefused: 7 },
    metrics: { jobs: { rejected: 6, queueTimeouts: 1 } },
    openJobs: { running: [{ executionMs: 900 }, { executionMs: 30 }] },
    workers: { snapshot: () => [{ id: 1, pid: 42, state: 'ready', restarts: 0 }] },
    clis: [cli],
    names: { choice: { fallback: null, label: null }, defaultRoute: { cli, model: null } },
    store: { kind: 'sqlite', isUp: isStoreUp },
    fileFaults: new FileFaults(),
    config: { strictHealth },
    host: {
      defects: { lastAt: null },
      clock,
      product: { version: '1.2.3', commit: 'abc' },
      termination: { containments: { means: 'cgroup' } },
    },
  };
  return { clock, status: new Status(sources as unknown as StatusSources) };
}

describe('GET /health', () => {
  it.each<[Options, string, boolean]>([
    [{}, 'ok', true],
    [{ phase: 'starting' }, 'ok', true],
    [{ readiness: notReady }, 'degraded', true],
    [{ isStoreUp: false }, 'degraded', true],
    [{ isStoreUp: false, strictHealth: true }, 'degraded', true],
    [{ readiness: unknown }, 'degraded', true],
    [{ readiness: notReady, strictHealth: true }, 'degraded', false],
    [{ readiness: unknown, strictHealth: true }, 'degraded', false],
    [{ readiness: ready, strictHealth: true }, 'ok', true],
    [{ phase: 'draining' }, 'draining', false],
    [{ phase: 'stopped', strictHealth: true }, 'draining', false],
  ])('shows the state of the service by status and usability (%#)', (options, word, isUsable) => {
    const { status } = createStatus(options);
    expect([status.health(true).status, status.isUsable]).toEqual([word, isUsable]);
  });

  it('explains why it is degraded, also while it drains, and has no reasons while it is ok', () => {
    expect(createStatus().status.health(true).reasons).toEqual([]);
    const both = { readiness: notReady, isStoreUp: false };
    const reasons = [
      { part: 'cli', name: 'demo', message: 'the model CLI demo is not ready: nobody is logged in' },
      {
        part: 'store',
        name: 'sqlite',
        message: 'the store (sqlite) is down: conversations and background jobs are refused',
      },
    ];
    for (const phase of ['ready', 'draining'] as const) {
      expect(createStatus({ ...both, phase }).status.health(true).reasons).toEqual(reasons);
    }
  });

  it('names the store, and whether it is up', () => {
    expect(createStatus().status.health(true).store).toEqual({ kind: 'sqlite', up: true });
    expect(createStatus({ isStoreUp: false }).status.health(true).store).toEqual({ kind: 'sqlite', up: false });
  });

  it('shows what the account of the model CLI blocks, and the rest of its quota', () => {
    const [since, until] = ['2026-01-01T00:00:00.000Z', '2026-01-02T00:00:00.000Z'];
    expect(createStatus({ breaker: held }).status.health(true).observability.model_runtime.breaker).toEqual({
      state: 'open',
      reason: 'quota',
      since,
      until,
      models: [{ model: 'opus', state: 'half_open', reason: 'quota', since }],
      windows: [{ name: 'five_hour', status: 'rejected', utilization: 1, resets_at: until }],
    });
  });

  it('shows the figures of the components, as its schema defines', async () => {
    const { clock, status } = createStatus({ readiness: notReady });
    await clock.advance(1500);
    const body = status.health(true);
    expect(healthBody.parse(body)).toEqual(body);
    expect(body.readiness.model_cli).toEqual({
      status: 'not_ready',
      checked_at: '2026-01-01T12:00:00.000Z',
      duration_ms: 40,
      trigger: 'start',
      cli: 'demo',
      adapter: 'demo',
      version: '1.0',
      error: 'nobody is logged in',
    });
    expect(body.observability).toEqual({
      started_at: '2026-01-01T00:00:00.000Z',
      uptime_seconds: 1.5,
      model_runtime: {
        active_requests: 2,
        queued_requests: 5,
        active_ages_ms: [900, 30],
        max_concurrent: 4,
        max_queue: 100,
        rejected_total: 6,
        queue_timeouts_total: 1,
        queue_full_since: '2026-01-01T00:00:00.000Z',
        refused_last_5_minutes: 7,
        breaker: expect.anything(),
      },
      cli_processes: { standby: 1, renewed: 0, live: 2, tools: 0, busy: 3, stopping: 4 },
      workers: [{ id: 1, pid: 42, state: 'ready', restarts: 0 }],
    });
  });

  it('shows why processes are not renewed, for how many clients, and until when', () => {
    const until = Date.UTC(2026, 0, 1, 13);
    const renewalFaults: readonly RenewalFault[] = [
      { kind: 'renewal', reason: 'memory', failingClients: 0, pausedClients: 0, until: null },
      { kind: 'rewinding', reason: 'late', failingClients: 3, pausedClients: 2, until },
    ];
    const body = createStatus({ renewalFaults }).status.health(true);
    expect(healthBody.parse(body)).toEqual(body);
    const [short, late] = body.observability.renewals ?? [];
    expect(short?.message).toBe('no process is renewed: memory is short');
    expect(late).toEqual({
      ...{ cli: 'demo', kind: 'rewinding', reason: 'late', failing_clients: 3, paused_clients: 2 },
      message:
        'no process is rewound for 3 clients, for 2 of them not again for an hour: the model CLI has not answered within a second',
      until: '2026-01-01T13:00:00.000Z',
    });
  });

  it('has no error if there is none, and no time before the first check', () => {
    const { model_cli } = createStatus({ readiness: unknown }).status.health(true).readiness;
    expect(model_cli).not.toHaveProperty('error');
    expect(model_cli.checked_at).toBeNull();
  });
});

it('The process ids of the workers are omitted for viewers without permission', () => {
  const { status } = createStatus();
  const bodies = [healthBody.parse(status.health(false)), historyBody.parse(status.history(null, false))];
  for (const { observability } of bodies) {
    expect(observability.workers).toEqual([{ id: 1, state: 'ready', restarts: 0 }]);
  }
});

it('GET /health/history shows the checks, as its schema defines', () => {
  const body = createStatus().status.history(null, true);
  expect(historyBody.parse(body)).toEqual(body);
  expect(body.history.map(({ status }) => status)).toEqual(['unknown', 'ready']);
});

it('GET /version names the product, the CLI and the means of termination, as its schema defines', () => {
  const body = createStatus().status.version();
  expect(versionBody.parse(body)).toEqual(body);
  expect(body).toMatchObject({
    name: 'prompt-relay',
    version: '1.2.3',
    commit: 'abc',
    model_cli: { adapter: 'demo', version: '1.0' },
    termination: 'cgroup',
    uptime_seconds: 0,
  });
});

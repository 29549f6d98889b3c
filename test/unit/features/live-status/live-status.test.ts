import { type SectionSources, sectionsOf } from '../../../../src/features/live-status/sections.js';
import { StatusFeed } from '../../../../src/features/live-status/status-feed.js';
import { FileFaults } from '../../../../src/primary/access/file-faults.js';
import { Status, type StatusSources } from '../../../../src/primary/observe/status.js';
import { type StatusBody, statusBody } from '../../../../src/shared/api/status.js';
import { loginOf } from '../../../support/agents/logins.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { jobRequest } from '../../../support/jobs/job-records.js';

const at = Date.UTC(2026, 0, 1);

const cli = {
  ...loginOf('demo'),
  pool: { counts: () => ({ standby: 1, renewed: 0, live: 0, tools: 0, busy: 2, stopping: 0 }), renewalFaults: [] },
  health: {
    shortage: null,
    circuits: { status: [{ state: 'closed', model: null, reason: null, since: null, until: null }] },
    windows: { current: [] },
    checks: { current: { status: 'ready' }, history: (): unknown[] => [] },
  },
};

const ofJobs = {
  ...{ jobs: 8, failed_jobs: 2, cancelled_jobs: 1, refused: 3, output_tokens: 70 },
  ...{ first_deltas: 4, first_delta_seconds: 0.5 },
};

const room = { limits: { maxActive: 2, maxWaiting: 100 }, waiting: 3, fullSince: null };

const reservedSlots = [{ group: 'bio101', slots: 1, running: 0, until: '2026-01-01T02:00:00.000Z' }];

function statusWith(withNames: boolean, sources: object = {}): StatusBody {
  const clock = new FakeClock();
  const all = {
    host: { clock, defects: { lastAt: null }, product: { version: '1.2.3', commit: 'abc' } },
    config: { needsKey: true, maxJobs: 1000 },
    supervisor: { phase: 'ready', drainEndsAt: null },
    names: { choice: { fallback: null, label: null }, defaultRoute: { cli, model: null } },
    store: { kind: 'redis', isUp: true, jobs: { shared: { waiting: { count: 12 } } } },
    fileFaults: new FileFaults(),
    room: {
      ...room,
      waitingClients: [
        { client: 'key bob', count: 1, oldestAt: at + 2000, reason: 'slot' },
        { client: 'key alice/anna', count: 2, oldestAt: at + 1000, reason: 'slot' },
      ],
    },
    openJobs: {
      running: [
        { number: 7, request: jobRequest({ client: 'key alice', model: 'eliza', text: 'secret' }), startedAt: at },
        { number: 8, request: jobRequest({ client: 'address ::1', operation: 'chat' }), startedAt: at + 500 },
      ],
    },
    localJobs: {
      idOf: ({ number }: { readonly number: number }) => `${number}-abc`,
      counts: { queued: 0, running: 1 },
    },
    workers: { snapshot: () => [{ id: 1, pid: 42, state: 'ready', restarts: 0 }] },
    clis: [cli],
    jobHooks: { reservedSlots },
    jobEntry: { recentlyRefused: 4 },
    lastHour: { body: [], day: [], totalRequests: 9 },
    metrics: { jobs: { totals: ofJobs } },
    ...sources,
  };
  const status = new Status(all as unknown as StatusSources);
  const sections = sectionsOf({ ...all, status: () => status } as unknown as SectionSources, withNames);
  return JSON.parse(new StatusFeed(sections, clock).text) as StatusBody;
}

const minute = { requests: 1, errors: 0, jobs: 0, failed_jobs: 0, refused: 0, job_ms: null };

describe('The live status', () => {
  it('shows which jobs run, which wait and since when, as its schema defines', () => {
    const status = statusWith(true, {
      lastHour: {
        body: [{ at: '2026-01-01T00:00:00.000Z', ...minute }],
        day: [],
        totalRequests: 9,
      },
    });
    expect(statusBody.parse(status)).toEqual(status);
    expect(status.totals).toEqual({ requests: 9, ...ofJobs });
    expect(status).toMatchObject({
      service: { status: 'ok', version: '1.2.3', started_at: '2026-01-01T00:00:00.000Z', drain_ends_at: null },
      slots: {
        max: 2,
        running: [
          { job: 7, client: 'alice', operation: 'ask', model: 'eliza', started_at: '2026-01-01T00:00:00.000Z' },
          { job: 8, client: '::1', operation: 'chat', model: null, started_at: '2026-01-01T00:00:00.500Z' },
        ],
        reserved: reservedSlots,
      },
      queue: {
        max: 100,
        waiting: 3,
        full_since: null,
        refused_last_5_minutes: 4,
        clients: [
          { client: 'alice/anna', waiting: 2, oldest_since: '2026-01-01T00:00:01.000Z', reason: 'slot' },
          { client: 'bob', waiting: 1, oldest_since: '2026-01-01T00:00:02.000Z', reason: 'slot' },
        ],
      },
      background_jobs: { max: 1000, waiting: 12, running: 1 },
      workers: [{ id: 1, pid: 42, state: 'ready', restarts: 0 }],
      cli_processes: { standby: 1, renewed: 0, live: 0, tools: 0, busy: 2, stopping: 0 },
      breaker: { state: 'closed' },
    });
  });

  it('omits names and process ids for viewers without permission, and never contains a text', () => {
    const text = JSON.stringify(statusWith(false));
    for (const word of ['alice', 'anna', 'bob', '::1', '42', 'secret']) expect(text).not.toContain(word);
    const status = statusWith(false);
    expect(statusBody.parse(status)).toEqual(status);
    expect(status.slots.running.map(({ client }) => client)).toEqual([null, null]);
    expect(status.queue.clients.map(({ client, waiting }) => [client, waiting])).toEqual([
      [null, 2],
      [null, 1],
    ]);
    expect(JSON.stringify(statusWith(true))).not.toContain('secret');
  });

  it('offers a check to viewers who see names, if there are keys', () => {
    const offers = (withNames: boolean, needsKey: boolean) =>
      statusWith(withNames, { config: { needsKey } }).service.may_recheck;
    expect([offers(true, true), offers(false, true), offers(true, false), offers(false, false)]).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });

  it('reports why the service is degraded, and since when the queue has been full', () => {
    const message = 'the store (redis) is down: conversations and background jobs are refused';
    const reasons = [{ part: 'store', name: 'redis', message }];
    const full = { room: { ...room, fullSince: at, waitingClients: [] } };
    const status = statusWith(false, { store: { kind: 'redis', isUp: false, jobs: { shared: null } }, ...full });
    expect(statusBody.parse(status)).toEqual(status);
    expect(status.service.status).toBe('degraded');
    expect([status.service.reasons, status.queue.full_since]).toEqual([reasons, '2026-01-01T00:00:00.000Z']);
  });

  it('reports how long a drain may last', () => {
    const { service } = statusWith(true, { supervisor: { phase: 'draining', drainEndsAt: at + 30_000 } });
    expect(service.drain_ends_at).toBe('2026-01-01T00:00:30.000Z');
  });

  it('shows the fifty clients that have waited longest, and the last hundred checks', () => {
    const entry = { status: 'ready', durationMs: 1, trigger: 'interval', adapter: 'demo', version: null, error: null };
    const checks = Array.from({ length: 120 }, (_, index) => ({ ...entry, checkedAt: at + index }));
    const crowd = Array.from({ length: 60 }, (_, index) => ({
      client: `user ${index}`,
      count: 1,
      oldestAt: at - index,
    }));
    const status = statusWith(true, {
      room: { ...room, waiting: 60, waitingClients: crowd },
      clis: [{ ...cli, health: { ...cli.health, checks: { ...cli.health.checks, history: () => checks } } }],
    });
    expect(status.queue.clients).toHaveLength(50);
    expect(status.queue.clients[0]?.client).toBe('59');
    expect(status.checks.map(({ checked_at }) => checked_at)).toEqual(
      checks.slice(20).map(({ checkedAt }) => new Date(checkedAt).toISOString()),
    );
  });
});

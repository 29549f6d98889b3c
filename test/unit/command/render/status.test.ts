import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ServiceSnapshot } from '../../../../src/command/base/snapshot.js';
import {
  accountLine,
  failureLines,
  gauge,
  readinessStrip,
  renderStatus,
} from '../../../../src/command/render/status.js';
import type { BreakerBody, ReadinessBody } from '../../../../src/shared/api/health.js';
import { colourCodes, paintFor } from '../../../../src/shared/text/paint.js';
import { root } from '../../../support/documents/sources.js';

const paint = paintFor(false);
const coloured = paintFor(true);
const startedAt = '2026-01-31T12:00:00.000Z';

function check(fields: Partial<ReadinessBody> = {}): ReadinessBody {
  const cli = { adapter: 'claude', version: '2.1.328' };
  return { status: 'ready', checked_at: startedAt, duration_ms: 41, trigger: 'interval', ...cli, ...fields };
}

const counts = { requests: 1234, jobs: 45, failed: 0, cancelled: 2, refused: 0 };
const totals = { ...counts, tokensOut: 900, firsts: 0, firstSeconds: 0 };

const snapshot: ServiceSnapshot = {
  url: 'http://127.0.0.1:5051',
  command: ['/opt/claude', '-p', 'a b'],
  takenAt: Date.parse('2026-01-31T12:00:12.000Z'),
  version: {
    name: 'prompt-relay',
    version: '0.1.0',
    commit: null,
    node: 'v20.20.2',
    model_cli: { adapter: 'claude', version: '2.1.328' },
    termination: 'cgroup',
    uptime_seconds: 11_520,
  },
  health: {
    status: 'ok',
    strict_mode: false,
    readiness: { model_cli: check() },
    observability: {
      started_at: startedAt,
      uptime_seconds: 11_520,
      model_runtime: {
        ...{ active_requests: 4, queued_requests: 17, max_concurrent: 4, max_queue: 100 },
        ...{ rejected_total: 0, queue_timeouts_total: 0 },
      },
      cli_processes: { standby: 1, renewed: 0, live: 2, tools: 0, busy: 4, stopping: 0 },
      workers: [
        { id: 1, pid: 4711, state: 'ready', restarts: 0 },
        { id: 2, pid: null, state: 'starting', restarts: 3 },
      ],
    },
  },
  checks: [check({ status: 'not_ready', error: 'not logged in' }), check()],
  totals,
  reserved: [],
  change: null,
};

type Health = ServiceSnapshot['health'];

/** Returns the lines for the snapshot with these differences. */
function linesWith(health: Partial<Health>, more: Partial<ServiceSnapshot> = {}): string[] {
  return renderStatus({ ...snapshot, health: { ...snapshot.health, ...health }, ...more }, paint);
}

/** Returns the health with these differences in the figures of its jobs. */
function healthWith(runtime: Partial<Health['observability']['model_runtime']>): Partial<Health> {
  const { observability } = snapshot.health;
  return { observability: { ...observability, model_runtime: { ...observability.model_runtime, ...runtime } } };
}

describe('The output of status', () => {
  it('names slots that are reserved, with the group, the end and its running jobs', () => {
    const reserved = [{ group: 'bio101', slots: 2, running: 1, until: '2026-01-31T14:00:00.000Z' }];
    const lines = linesWith({}, { reserved });
    expect(lines.find((line) => line.includes('reserved'))).toMatch(
      /reserved +2 slots for bio101 until 2026-01-31 14:00 UTC, 1 running$/,
    );
    expect(linesWith({}).some((line) => line.startsWith('reserved'))).toBe(false);
  });

  it('has one line for each kind of state', () => {
    expect(renderStatus(snapshot, paint)).toEqual([
      'prompt-relay 0.1.0  ok  http://127.0.0.1:5051, up 3 h 12 min',
      'model CLI  claude 2.1.328: ready (checked 12 s ago in 41 ms, trigger: interval)',
      "command    /opt/claude -p 'a b'",
      'checks     ✗▪  1 of 2 checks ready',
      'slots      4 of 4     ████',
      'queue      17 of 100  ███░░░░░░░░░░░░░░░░░',
      'processes  4 busy, 2 reserved for conversations, 1 on standby, 0 stopping',
      'workers    ● 4711   ○ – starting, 3 restarts',
      'total      1,234 requests · 45 jobs · 0 failed · 2 cancelled · 0 refused · 900 output tokens',
    ]);
  });

  it('shows how long each job has used its slot, longest first', () => {
    const lines = linesWith(healthWith({ active_ages_ms: [61_000, 1500, ...Array(9).fill(40)] }));
    const ages = lines.find((line) => line.startsWith('job ages'));
    expect(ages).toMatch(/^job ages {3}1 min.* {2}1\.5 s {2}40 ms( {2}40 ms){5} and 3 more$/);
  });

  it('shows the account if anything is known', () => {
    const breaker: BreakerBody = { state: 'half_open', reason: 'auth', models: [], windows: [] };
    expect(linesWith(healthWith({ breaker }))[3]).toBe('account    auth: the next job decides');
  });

  it('shows why no process is renewed, and when the last pause ends', () => {
    const { observability } = snapshot.health;
    const message = 'no process is renewed for 1 client';
    const counts = { failing_clients: 1, paused_clients: 1 };
    const fault = { cli: 'claude', kind: 'renewal', reason: 'late', message, ...counts, until: null } as const;
    const paused = { ...fault, account: 'team', until: '2026-01-31T12:10:12.000Z' };
    const lines = linesWith({ observability: { ...observability, renewals: [fault, paused] } });
    expect(lines.filter((line) => line.startsWith('renewals'))).toEqual([
      `renewals   claude: ${message}`,
      `renewals   claude@team: ${message}; the last pause ends in 10 min`,
    ]);
  });

  it('shows the end time of a drain', () => {
    const [, line] = linesWith({ status: 'draining', drain_ends_at: '2026-01-31T12:00:42.000Z' });
    const limit = 'until 2026-01-31 12:00:42 UTC at the latest, in 30 s';
    expect(line).toBe(`drain      ${limit}: jobs finish, new ones are refused`);
  });

  it('has the same labels as the example in the documentation', () => {
    const page = readFileSync(join(root, 'docs', 'command.md'), 'utf8');
    const [, shown = ''] = /^\$ prompt-relay status --watch\n(.*?)\nPress Ctrl-C to exit\.$/ms.exec(page) ?? [];
    const lines = linesWith(healthWith({ active_ages_ms: [2400, 2300] }), { change: { ...totals, seconds: 2 } });
    const labels = (lines: readonly string[]) => lines.slice(1).map((line) => line.slice(0, 11).trimEnd());
    expect(labels(shown.split('\n'))).toEqual(labels(lines));
  });

  it('shows the command line, and omits it if the service does not send it', () => {
    expect(linesWith({})).toContain("command    /opt/claude -p 'a b'");
    expect(linesWith({}, { command: null }).join()).not.toContain('command');
  });

  it.each([60, 80])('fits into %s columns', (columns) => {
    const change = { ...totals, seconds: 2, firsts: 1, firstSeconds: 1 };
    const plainLines = renderStatus({ ...snapshot, change }, paint, columns);
    expect(plainLines.filter((line) => line.length > columns)).toEqual([]);
    const shown = renderStatus({ ...snapshot, change }, coloured, columns).map((line) => line.replace(colourCodes, ''));
    expect(shown).toEqual(plainLines);
  });

  it('shows rates from the second snapshot on', () => {
    const grown = { requests: 5, jobs: 3, failed: 1, tokensOut: 300, firsts: 2, firstSeconds: 0.1 };
    const rates = '2.5/s requests · 1.5/s jobs · 0.5/s failed · 0/s refused · 150/s output tokens';
    const lines = linesWith({}, { change: { ...totals, seconds: 2, ...grown } });
    expect(lines.at(-1)).toBe(`now        ${rates} · first text after 50 ms`);
  });

  it('shows why the model CLI is not ready, with escaped control characters', () => {
    const found = check({ status: 'not_ready', error: 'not \u001b[2Jlogged in' });
    const [head, line] = linesWith({ status: 'degraded', readiness: { model_cli: found } });
    expect(head).toContain('degraded');
    expect(line).toContain('claude 2.1.328: not ready: not \\x1b[2Jlogged in (checked');
  });

  it('shows first why the service is degraded, and how long no job starts', () => {
    const reasons = [
      { part: 'cli' as const, name: 'codex', message: 'the model CLI codex is not ready: \u001b[2Jno' },
      { part: 'quota' as const, name: 'claude', message: 'no quota', until: '2026-01-31T12:05:12.000Z' },
    ];
    expect(linesWith({ status: 'degraded', reasons }).slice(1, 3)).toEqual([
      'why        the model CLI codex is not ready: \\x1b[2Jno',
      'why        no quota; no job is started for 5 min',
    ]);
  });

  it('shows since when the queue is full, and how many were refused', () => {
    const pressure = { queue_full_since: '2026-01-31T11:59:38.000Z', refused_last_5_minutes: 1200 };
    const lines = linesWith(healthWith({ queued_requests: 100, ...pressure }));
    expect(lines).toContain(`queue      100 of 100  ${'█'.repeat(20)}  full for 34 s`);
    expect(lines).toContain('refused    1,200 in the last 5 minutes');
  });

  it('shows that no check has been made yet', () => {
    const found = check({ status: 'unknown', checked_at: null, version: null });
    const lines = linesWith({ readiness: { model_cli: found } }, { checks: [], command: null });
    expect(lines.slice(1, 3)).toEqual(['model CLI  claude: not checked yet', 'slots      4 of 4     ████']);
  });
});

describe('The elements of status', () => {
  it('show the last forty checks, the newest at the right', () => {
    const checks = [...Array.from({ length: 60 }, () => check()), check({ status: 'not_ready' })];
    expect(readinessStrip(checks, paint)).toBe(`${'▪'.repeat(39)}✗  60 of 61 checks ready`);
  });

  it.each([
    [0, 100, '░'.repeat(20)],
    [1, 100, `█${'░'.repeat(19)}`],
    [99, 100, `${'█'.repeat(19)}░`],
    [100, 100, '█'.repeat(20)],
    [1, 2, '█░'],
    [0, 0, '░'.repeat(20)],
    [5, 4, '████'],
  ])('show %d of %d as a bar', (used, limit, bar) => {
    expect(gauge(used, limit, paint)).toBe(bar);
  });

  it('turn yellow at three quarters and red when full', () => {
    const colours = [1, 3, 4].map((used) => gauge(used, 4, coloured).slice(0, 5));
    expect(colours).toEqual([32, 33, 31].map((colour) => `\u001b[${colour}m`));
  });
});

describe('An error that prevents the status', () => {
  it('is shown line by line, without control characters', () => {
    const hostile = 'unauthorized: \u001b]0;title\u0007\u009b2J\nSet the key';
    expect(failureLines(hostile, paint)).toEqual(['unauthorized: ]0;title2J', 'Set the key']);
    expect(failureLines('a\nb', coloured)).toEqual([coloured.red('a'), coloured.red('b')]);
  });
});

const now = Date.parse('2026-01-31T12:00:00.000Z');
const inTenMinutes = '2026-01-31T12:10:00.000Z';
const closed: BreakerBody = { state: 'closed', models: [], windows: [] };

function line(breaker: Partial<BreakerBody>, isColoured = false): string {
  return accountLine({ ...closed, ...breaker }, now, paintFor(isColoured));
}

describe('The account line', () => {
  it('is empty if nothing is known and nothing is blocked', () => {
    expect(line({})).toBe('');
  });

  it('shows for how long jobs are blocked, and why', () => {
    const blocked = line({ state: 'open', reason: 'auth', since: inTenMinutes, until: inTenMinutes });
    expect(blocked).toBe('jobs blocked for 10 min: auth');
    expect(line({ state: 'half_open', reason: 'quota' })).toBe('quota: the next job decides');
  });

  it('lists only the blocked models, with escaped control characters', () => {
    const models = [
      { model: 'opus\u001b', state: 'open', reason: 'quota', until: inTenMinutes } as const,
      { model: '', state: 'half_open', reason: 'quota' } as const,
    ];
    const shown = 'opus\\x1b: jobs blocked for 10 min: quota   jobs without a model: quota: the next job decides';
    expect(line({ models })).toBe(shown);
  });

  it('shows the usage of each window, and highlights nearly used-up ones', () => {
    const windows = [
      { name: 'five_hour', status: 'warning', utilization: 0.924, resets_at: inTenMinutes } as const,
      { name: 'seven_day', status: 'allowed', utilization: 0.4, resets_at: null } as const,
      { name: 'other', status: 'rejected', utilization: null, resets_at: '2026-01-31T11:00:00.000Z' } as const,
    ];
    const shown = 'five_hour 92 % (reset in 10 min)   seven_day 40 %   other rejected (reset in 0 ms)';
    expect(line({ windows })).toBe(shown);
    expect(line({ windows }, true)).toContain('five_hour \u001b[33m92 %\u001b');
  });
});

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type SectionSources, sectionsOf } from '../../../../src/features/live-status/sections.js';
import { StatusFeed } from '../../../../src/features/live-status/status-feed.js';
import { type SetupSources, setupReportOf } from '../../../../src/features/setup-report/report.js';
import { FileFaults } from '../../../../src/primary/access/file-faults.js';
import { Status, type StatusSources } from '../../../../src/primary/observe/status.js';
import type { ClientText } from '../../../../src/shared/client.js';
import { loginOf } from '../../../support/agents/logins.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { root } from '../../../support/documents/sources.js';

const at = Date.UTC(2026, 0, 1);
const closed = { state: 'closed', model: null, reason: null, since: null, until: null };
const ready = { status: 'ready', checkedAt: at, durationMs: 40, trigger: 'start', version: '1.0', error: null };

function cliOf(name: string, check: object, status: readonly object[], windows: readonly object[]) {
  const current = { ...ready, cli: name, adapter: name, ...check };
  return {
    ...loginOf(name),
    adapter: { name, command: [`/bin/${name}`] },
    program: { version: '1.0' },
    publicName: (model: string | null) => (model === null ? name : `${name}/${model}`),
    pool: { counts: () => ({ standby: 1, renewed: 0, live: 2, tools: 0, busy: 3, stopping: 4 }), renewalFaults: [] },
    health: {
      shortage: null,
      circuits: { status },
      windows: { current: windows },
      checks: { current, history: () => [current] },
    },
  };
}

const open = { state: 'open', model: 'opus', reason: 'quota', since: at, until: at + 1000 };
const windows = [{ name: 'five_hour', status: 'rejected', utilization: 1, resetsAt: at + 1000 }];
const claude = cliOf('claude', {}, [closed, open], windows);
const notReady = { status: 'not_ready', error: 'not logged in', checkedAt: at + 5 };
const codex = cliOf('codex', notReady, [{ ...closed, state: 'open', reason: 'auth' }], []);

/** Creates the status of a service with these CLIs. */
function createStatus(clis: readonly object[], needsKey = true) {
  const clock = new FakeClock();
  const termination = { containments: { means: 'cgroup' }, fault: null };
  const queue = { limits: { maxActive: 4, maxWaiting: 100 }, fullSince: at };
  const sources = {
    supervisor: { phase: 'ready', drainEndsAt: null },
    room: { active: 2, waiting: 5, ...queue, waitingClients: [{ client: 'key bob', count: 1, oldestAt: at }] },
    jobEntry: { recentlyRefused: 7 },
    lastHour: { body: [], day: [], totalRequests: 9 },
    metrics: { jobs: { rejected: 6, queueTimeouts: 1, totals: { jobs: 8 } } },
    openJobs: {
      running: [
        { number: 7, request: { client: 'key al', operation: 'ask', model: null }, startedAt: at, executionMs: 9 },
      ],
    },
    localJobs: {
      idOf: ({ number }: { readonly number: number }) => `${number}-abc`,
      counts: { queued: 1, running: 1 },
    },
    workers: { snapshot: () => [{ id: 1, pid: 42, state: 'ready', restarts: 0 }] },
    clis,
    jobHooks: { reservedSlots: [] },
    names: { choice: { fallback: 'opus', label: 'opus' }, defaultRoute: { cli: claude, model: 'opus' } },
    store: { kind: 'sqlite', isUp: false, jobs: { shared: null } },
    fileFaults: new FileFaults(),
    config: {
      ...{ strictHealth: false, needsKey, socketPath: null, localUsers: 'off', allowedUsers: [], workers: 2 },
      ...{
        maxJobs: 10,
        maxConcurrent: 4,
        maxQueue: 100,
        queueTimeoutMs: 1,
        executionMs: 2,
        store: { kind: 'sqlite', shown: '/x' },
      },
    },
    host: { clock, defects: { lastAt: null }, product: { version: '1.2.3', commit: 'abc' }, termination },
  };
  return { clock, sources, status: new Status(sources as unknown as StatusSources) };
}

/** Returns the bodies of all routes that show the same state, for a service with these CLIs. */
function bodiesOf(clis: readonly object[]) {
  const { clock, sources, status } = createStatus(clis);
  const models = { count: 1, models: [{ id: 'opus', name: 'Opus', default: true, alias_of: 'x' }] };
  const commandOf = ({ adapter }: typeof claude) => adapter.command;
  const ofSetup = { ...sources, url: 'http://host', keys: ['bob'], commandOf, models, warnings: ['beware'] };
  const sections = sectionsOf({ ...sources, status: () => status } as unknown as SectionSources, true);
  return {
    health: status.health(true),
    history: status.history(null, false),
    status: JSON.parse(new StatusFeed(sections, clock).text),
    version: { ...status.version(), node: 'v0' },
    setup: setupReportOf(ofSetup as unknown as SetupSources),
  };
}

it('The status bodies are the same as in the golden file, member by member', () => {
  const bodies = { oneCli: bodiesOf([claude]), twoClis: bodiesOf([claude, codex]) };
  const golden = readFileSync(join(root, 'test/unit/primary/observe/status-bodies.json'), 'utf8');
  expect(JSON.stringify(bodies)).toBe(JSON.stringify(JSON.parse(golden)));
});

describe('An account with an owner', () => {
  const account = (name: string, ...owners: ClientText[]) => {
    const cli = cliOf('claude', { account: name }, [closed], []);
    const health = { ...cli.health, needsLogin: false };
    return { ...cli, ...loginOf('claude', { name, owners }), health, jobs: 0, lastUsedAt: null };
  };
  const clis = [account('team'), account('ada', 'sso ada', 'key ada'), account('bob', 'user bob')];

  it('is in no page of a service without keys, which has no administrator', () => {
    const shown = (needsKey: boolean) => {
      const { readiness } = createStatus(clis, needsKey).status.health(true);
      return (readiness.model_clis ?? [readiness.model_cli]).map(({ account: name }) => name);
    };
    expect([shown(true), shown(false)]).toEqual([['team', 'ada', 'bob'], ['team']]);
  });
});

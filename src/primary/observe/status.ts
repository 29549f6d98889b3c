import type {
  BreakerBody,
  HealthBody,
  HistoryBody,
  PressureBody,
  ReadinessBody,
  ReasonBody,
} from '../../shared/api/health.js';
import type { SectionName, StatusBody } from '../../shared/api/status.js';
import type { VersionBody } from '../../shared/api/version.js';
import { readClientId } from '../../shared/client.js';
import { timestamp } from '../../shared/clock.js';
import type { Config } from '../../shared/config/config.js';
import type { ReadinessEntry } from '../../shared/health.js';
import type { Phase } from '../../shared/phase.js';
import type { ModelCli } from '../cli/model-cli.js';
import type { AtLeastOne } from '../cli/models.js';
import type { ModelNames } from '../cli/route.js';
import type { CircuitStatus } from '../health/circuit.js';
import type { BackgroundJobs } from '../jobs/background-jobs.js';
import type { Job } from '../jobs/job.js';
import type { JobRunner } from '../jobs/job-runner.js';
import type { WaitingRoom } from '../jobs/waiting-room.js';
import type { Host } from '../lifecycle/host.js';
import type { Supervisor } from '../lifecycle/supervisor.js';
import type { Store } from '../store/contract/store.js';
import type { Workers } from '../workers/workers.js';
import type { LastHour } from './last-hour.js';
import type { PrimaryMetrics } from './primary-metrics.js';
import { degradedReasons } from './reasons.js';

/** How state is written in answers. */

const allClosed: CircuitStatus = { state: 'closed', model: null, reason: null, since: null, until: null };

/** One readiness check. */
export function readinessBodyOf({ checkedAt, durationMs, error, ...entry }: ReadinessEntry): ReadinessBody {
  return {
    status: entry.status,
    checked_at: checkedAt === null ? null : timestamp(checkedAt),
    duration_ms: durationMs,
    trigger: entry.trigger,
    cli: entry.cli,
    adapter: entry.adapter,
    version: entry.version,
    ...(error !== null && { error }),
  };
}

/** The checks of all CLIs, oldest first; with `since` (milliseconds since the epoch) only what was checked strictly later. */
export function historyOf(
  clis: readonly { readonly health: { readonly checks: Pick<ModelCli['health']['checks'], 'history'> } }[],
  since: number | null,
): readonly ReadinessEntry[] {
  const entries = clis.flatMap(({ health }) => health.checks.history(since));
  return clis.length === 1 ? entries : entries.sort((a, b) => (a.checkedAt ?? 0) - (b.checkedAt ?? 0));
}

/** The processes of all CLIs, by what they are doing. */
export function countsOf(clis: readonly Pick<ModelCli, 'pool'>[]): ReturnType<ModelCli['pool']['counts']> {
  const sum = { standby: 0, live: 0, busy: 0, stopping: 0 };
  for (const { pool } of clis) {
    const counts = pool.counts();
    for (const state of Object.keys(sum) as (keyof typeof sum)[]) sum[state] += counts[state];
  }
  return sum;
}

/** One CLI, as far as jobs of it may be held back. */
interface HeldCli extends Pick<ModelCli, 'publicName'> {
  readonly health: {
    readonly circuits: Pick<ModelCli['health']['circuits'], 'status'>;
    readonly windows: Pick<ModelCli['health']['windows'], 'current'>;
  };
}

/** For all jobs, then for each model that is held; of several CLIs, an account that is held has the CLI's name. */
export function breakerBodyOf(clis: AtLeastOne<HeldCli>): BreakerBody {
  const [account, ...models] =
    clis.length === 1 ? clis[0].health.circuits.status : [allClosed, ...clis.flatMap(heldBy)];
  const windows = clis.flatMap(({ health }) => health.windows.current);
  return {
    ...circuitBodyOf(account),
    models: models.map((status) => ({ model: status.model ?? '', ...circuitBodyOf(status) })),
    windows: windows.map(({ resetsAt, ...window }) => ({
      ...window,
      resets_at: resetsAt === null ? null : timestamp(resetsAt),
    })),
  };
}

function heldBy({ health, publicName }: HeldCli): CircuitStatus[] {
  const held = health.circuits.status.filter(({ state }) => state !== 'closed');
  return held.map((status) => ({ ...status, model: publicName(status.model) }));
}

function circuitBodyOf({ state, reason, since, until }: CircuitStatus) {
  return {
    state,
    ...(reason !== null && { reason }),
    ...(since !== null && { since: timestamp(since) }),
    ...(until !== null && { until: timestamp(until) }),
  };
}

/** The owners of what is shown. */
export interface StatusSources {
  readonly supervisor: { readonly phase: Phase };
  readonly room: Pick<WaitingRoom, 'active' | 'waiting' | 'limits' | 'fullSince'>;
  readonly lastHour: Pick<LastHour, 'recentlyRefused'>;
  readonly metrics: Pick<PrimaryMetrics, 'jobs'>;
  readonly runner: Pick<JobRunner, 'running'>;
  readonly workers: Pick<Workers, 'snapshot'>;
  readonly clis: AtLeastOne<ModelCli>;
  readonly names: Pick<ModelNames, 'choice' | 'usual'>;
  readonly store: Pick<Store, 'kind' | 'isUp'>;
  readonly config: Pick<Config, 'strictHealth'>;
  readonly host: Pick<Host, 'product' | 'termination' | 'clock'>;
}

/** Composes the answers of GET /health and GET /version, from state alone. */
export class Status {
  readonly #sources: StatusSources;
  readonly startedAt: string;
  readonly #startedMs: number;

  constructor(sources: StatusSources) {
    this.#sources = sources;
    this.startedAt = timestamp(sources.host.clock.now());
    this.#startedMs = sources.host.clock.monotonicMs();
  }

  /** `withPids`: process ids of the workers too. */
  health(withPids: boolean): HealthBody {
    const { clis, config, store } = this.#sources;
    const all = clis.length > 1 && { model_clis: clis.map(({ health }) => readinessBodyOf(health.checks.current)) };
    return {
      status: this.word,
      reasons: [...this.reasons],
      strict_mode: config.strictHealth,
      readiness: { model_cli: readinessBodyOf(clis[0].health.checks.current), ...all },
      store: { kind: store.kind, up: store.isUp },
      observability: this.#observability(withPids),
    };
  }

  /** Whether the service takes jobs, as GET /health tells by its status code. */
  get isUsable(): boolean {
    const { clis, config } = this.#sources;
    const isAnyReady = clis.some(({ health }) => health.checks.current.status === 'ready');
    return this.word !== 'draining' && (!config.strictHealth || isAnyReady);
  }

  history(since: number | null, withPids: boolean): HistoryBody {
    return {
      observability: this.#observability(withPids),
      history: historyOf(this.#sources.clis, since).map(readinessBodyOf),
    };
  }

  version(): VersionBody {
    const { host, clis } = this.#sources;
    const [first, ...others] = clis;
    const bodyOf = ({ adapter, program }: typeof first) => ({ adapter: adapter.name, version: program.version });
    const named = (cli: typeof first) => ({ cli: cli.name, ...bodyOf(cli) });
    return {
      name: 'prompt-relay',
      ...host.product,
      node: process.version,
      model_cli: bodyOf(first),
      ...(others.length > 0 && { model_clis: clis.map(named) }),
      termination: host.termination.containments.means,
      uptime_seconds: this.#uptimeSeconds,
    };
  }

  /** Why it is degraded, in a sentence each. */
  get reasons(): readonly ReasonBody[] {
    return degradedReasons(this.#sources);
  }

  /** That more is asked of it than it can do. */
  get pressure(): PressureBody {
    const { room, lastHour } = this.#sources;
    const { fullSince } = room;
    return {
      queue_full_since: fullSince === null ? null : timestamp(fullSince),
      refused_last_5_minutes: lastHour.recentlyRefused,
    };
  }

  /** How the service is, in one word. */
  get word(): HealthBody['status'] {
    const { supervisor } = this.#sources;
    if (supervisor.phase === 'draining' || supervisor.phase === 'stopped') return 'draining';
    return this.reasons.length === 0 ? 'ok' : 'degraded';
  }

  #observability(withPids: boolean): HealthBody['observability'] {
    const { room, metrics, runner, workers, clis } = this.#sources;
    return {
      started_at: this.startedAt,
      uptime_seconds: this.#uptimeSeconds,
      model_runtime: {
        active_requests: room.active,
        queued_requests: room.waiting,
        active_ages_ms: runner.running.map(({ executionMs }) => executionMs),
        max_concurrent: room.limits.maxActive,
        max_queue: room.limits.maxWaiting,
        rejected_total: metrics.jobs.rejected,
        queue_timeouts_total: metrics.jobs.queueTimeouts,
        ...this.pressure,
        breaker: breakerBodyOf(clis),
      },
      cli_processes: countsOf(clis),
      workers: withPids ? workers.snapshot() : workers.snapshot().map(({ pid: _, ...worker }) => worker),
    };
  }

  get #uptimeSeconds(): number {
    return Math.round(this.#sources.host.clock.monotonicMs() - this.#startedMs) / 1000;
  }
}

const maxClients = 50;
const maxChecks = 100;

/** The owners of what is shown. */
export interface LiveSources {
  readonly status: Pick<Status, 'word' | 'reasons' | 'pressure' | 'startedAt'>;
  readonly config: Pick<Config, 'needsKey'>;
  readonly version: string;
  readonly supervisor: Pick<Supervisor, 'drainEndsAt'>;
  readonly room: Pick<WaitingRoom, 'limits' | 'waiting' | 'waitingClients'>;
  readonly runner: Pick<JobRunner, 'running'>;
  readonly background: Pick<BackgroundJobs, 'load'>;
  readonly workers: Pick<Workers, 'snapshot'>;
  readonly clis: AtLeastOne<Pick<ModelCli, 'pool' | 'health' | 'publicName'>>;
  readonly lastHour: Pick<LastHour, 'body' | 'totalRequests'>;
  readonly metrics: { readonly jobs: Pick<PrimaryMetrics['jobs'], 'totals'> };
}

/** Makes one section of the body of GET /status. */
export type Sections = { readonly [N in SectionName]: () => StatusBody[N] };

/**
 * Composes what GET /status shows, from state alone, and with times instead of ages, so that nothing changes only because
 * time passes. `withNames`: names of clients and process ids of workers too.
 */
export function liveSections(sources: LiveSources, withNames: boolean): Sections {
  const { status, config, version, supervisor, room, runner, background, workers, clis, lastHour, metrics } = sources;
  const nameOf = (client: string) => (withNames ? readClientId(client).name : null);
  return {
    service: () => ({
      status: status.word,
      reasons: [...status.reasons],
      may_recheck: withNames && config.needsKey,
      version,
      started_at: status.startedAt,
      drain_ends_at: supervisor.drainEndsAt === null ? null : timestamp(supervisor.drainEndsAt),
    }),
    slots: () => ({ max: room.limits.maxActive, running: runner.running.map((job) => runningBody(job, nameOf)) }),
    queue: () => ({
      max: room.limits.maxWaiting,
      waiting: room.waiting,
      full_since: status.pressure.queue_full_since,
      refused_last_5_minutes: status.pressure.refused_last_5_minutes,
      clients: waitingBodies(room, nameOf),
    }),
    background_jobs: () => background.load,
    workers: () => (withNames ? workers.snapshot() : workers.snapshot().map(({ pid: _, ...worker }) => worker)),
    cli_processes: () => countsOf(clis),
    breaker: () => breakerBodyOf(clis),
    checks: () => historyOf(clis, null).slice(-maxChecks).map(readinessBodyOf),
    totals: () => ({ requests: lastHour.totalRequests, ...metrics.jobs.totals }),
    last_hour: () => lastHour.body,
  };
}

type ShownName = (client: string) => string | null;

function runningBody({ number, request, startedAt }: Job, nameOf: ShownName): StatusBody['slots']['running'][number] {
  const { client, operation, model } = request;
  return { job: number, client: nameOf(client), operation, model, started_at: timestamp(startedAt ?? 0) };
}

function waitingBodies({ waitingClients }: LiveSources['room'], nameOf: ShownName): StatusBody['queue']['clients'] {
  const oldest = waitingClients.sort((a, b) => a.oldestAt - b.oldestAt).slice(0, maxClients);
  return oldest.map(({ client, count, oldestAt, reason }) => ({
    client: nameOf(client),
    waiting: count,
    oldest_since: timestamp(oldestAt),
    reason,
  }));
}

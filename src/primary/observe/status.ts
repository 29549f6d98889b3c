import type { BreakerBody, HealthBody, HistoryBody, ReadinessBody, ReasonBody } from '../../shared/api/health.js';
import type { VersionBody } from '../../shared/api/version.js';
import { timestamp } from '../../shared/clock.js';
import type { Config } from '../../shared/config/config.js';
import type { LoginNames, ReadinessEntry } from '../../shared/health.js';
import type { FileFaults } from '../access/file-faults.js';
import type { ModelCli } from '../cli/model-cli.js';
import type { AtLeastOne } from '../cli/models.js';
import type { CircuitStatus } from '../health/circuit.js';
import type { JobEntry } from '../jobs/job-entry.js';
import type { OpenJobs } from '../jobs/open-jobs.js';
import type { WaitingRoom } from '../jobs/waiting-room.js';
import type { Host } from '../lifecycle/host.js';
import type { Supervisor } from '../lifecycle/supervisor.js';
import type { Store } from '../store/contract/store.js';
import type { Workers } from '../workers/workers.js';
import { degradedReasons, isPersonal, type ReasonSources } from './degraded.js';
import type { PrimaryMetrics } from './primary-metrics.js';
import { renewalFaultsOf } from './renewal-faults.js';

/** Parts of the service whose state is shown. */
export interface StatusSources extends ReasonSources {
  readonly fileFaults: Pick<FileFaults, 'reasons' | 'files'>;
  readonly supervisor: Pick<Supervisor, 'phase' | 'drainEndsAt'>;
  readonly store: Pick<Store, 'kind' | 'isUp'>;
  readonly room: Pick<WaitingRoom, 'active' | 'waiting' | 'limits' | 'fullSince'>;
  readonly jobEntry: Pick<JobEntry, 'recentlyRefused'>;
  readonly metrics: Pick<PrimaryMetrics, 'jobs'>;
  readonly openJobs: Pick<OpenJobs, 'running'>;
  readonly workers: Pick<Workers, 'snapshot'>;
  readonly config: Pick<Config, 'strictHealth' | 'needsKey'>;
  readonly host: Pick<Host, 'product' | 'termination' | 'clock' | 'defects'>;
}

/** Composes the bodies of GET /health and /version from the present state, and starts nothing. */
export class Status {
  readonly #sources: StatusSources;
  readonly startedAt: string;
  readonly #startedMs: number;

  constructor(sources: StatusSources) {
    this.#sources = sources;
    this.startedAt = timestamp(sources.host.clock.now());
    this.#startedMs = sources.host.clock.monotonicMs();
  }

  /** Returns the body of GET /health. `withPids`: whether to include process ids of workers. */
  health(withPids: boolean): HealthBody {
    const { config, store, fileFaults } = this.#sources;
    const { drainEndsAt } = this;
    const { files } = fileFaults;
    const clis = this.visible(withPids);
    const [first, ...others] = clis.map(({ health }) => readinessBodyOf(health.checks.current)) as [ReadinessBody];
    return {
      ...this.verdict,
      ...(drainEndsAt !== null && { drain_ends_at: drainEndsAt }),
      strict_mode: config.strictHealth,
      readiness: { model_cli: first, ...(others.length > 0 && { model_clis: [first, ...others] }) },
      store: { kind: store.kind, up: store.isUp },
      files,
      observability: this.#observability(withPids),
    };
  }

  /** Whether the service accepts jobs, which decides the status code of GET /health. */
  get isUsable(): boolean {
    const { clis, config } = this.#sources;
    const isAnyReady = clis.some(({ health }) => health.checks.current.status === 'ready');
    return this.verdict.status !== 'draining' && (!config.strictHealth || isAnyReady);
  }

  history(since: number | null, withPids: boolean): HistoryBody {
    return { observability: this.#observability(withPids), history: this.checks(since, withPids) };
  }

  version(): VersionBody {
    const { host, clis } = this.#sources;
    return {
      name: 'prompt-relay',
      ...host.product,
      node: process.version,
      ...firstAndAll(clis, ({ adapter, program }) => ({ adapter: adapter.name, version: program.version })),
      termination: host.termination.containments.means,
      uptime_seconds: this.#uptimeSeconds,
    };
  }

  /** Latest end of the drain; null if the service does not drain. */
  get drainEndsAt(): string | null {
    return timeOrNull(this.#sources.supervisor.drainEndsAt);
  }

  /** Status of the service in one word, and the reasons. */
  get verdict(): { readonly status: HealthBody['status']; readonly reasons: ReasonBody[] } {
    const { phase } = this.#sources.supervisor;
    const reasons = degradedReasons(this.#sources);
    if (phase === 'draining' || phase === 'stopped') return { status: 'draining', reasons };
    return { status: reasons.length === 0 ? 'ok' : 'degraded', reasons };
  }

  #observability(withPids: boolean): HealthBody['observability'] {
    const { room, metrics, openJobs, jobEntry } = this.#sources;
    const renewals = renewalFaultsOf(this.visible(withPids));
    return {
      started_at: this.startedAt,
      uptime_seconds: this.#uptimeSeconds,
      model_runtime: {
        active_requests: room.active,
        queued_requests: room.waiting,
        active_ages_ms: openJobs.running.map(({ executionMs }) => executionMs),
        max_concurrent: room.limits.maxActive,
        max_queue: room.limits.maxWaiting,
        rejected_total: metrics.jobs.rejected,
        queue_timeouts_total: metrics.jobs.queueTimeouts,
        queue_full_since: timeOrNull(room.fullSince),
        refused_last_5_minutes: jobEntry.recentlyRefused,
        breaker: breakerBodyOf(this.visible(withPids)),
      },
      cli_processes: this.processCounts,
      ...(renewals.length > 0 && { renewals }),
      workers: this.workers(withPids),
    };
  }

  /** Number of processes of all CLIs, by state. */
  get processCounts(): HealthBody['observability']['cli_processes'] {
    return countsOf(this.#sources.clis);
  }

  checks(since: number | null, withNames: boolean): ReadinessBody[] {
    return historyOf(this.visible(withNames), since).map(readinessBodyOf);
  }

  /**
   * Returns the CLIs and accounts that a caller may see: without names, none that belongs to a client. Without keys, no
   * caller is an administrator, and none sees the accounts of others.
   */
  visible(withNames: boolean): AtLeastOne<ModelCli> {
    const { clis, config } = this.#sources;
    const seesAll = withNames && config.needsKey;
    const [first = clis[0], ...others] = clis.filter((cli) => seesAll || !isPersonal(cli));
    return [first, ...others];
  }

  workers(withPids: boolean): HealthBody['observability']['workers'] {
    const workers = this.#sources.workers.snapshot();
    return withPids ? workers : workers.map(({ pid: _, ...worker }) => worker);
  }

  get #uptimeSeconds(): number {
    return Math.round(this.#sources.host.clock.monotonicMs() - this.#startedMs) / 1000;
  }
}

/**
 * Returns the body of the first CLI, and with several CLIs also the bodies of all, with their names. The first account
 * in use stands for each CLI.
 */
export function firstAndAll<C extends Pick<ModelCli, 'name'>, B>(accounts: AtLeastOne<C>, bodyOf: (cli: C) => B) {
  const clis = accounts.filter(({ name }, index) => accounts.findIndex((other) => other.name === name) === index);
  const all = clis.length > 1 && { model_clis: clis.map((cli) => ({ cli: cli.name, ...bodyOf(cli) })) };
  return { model_cli: bodyOf(accounts[0]), ...all };
}

function readinessBodyOf({ checkedAt, durationMs, error, ...entry }: ReadinessEntry): ReadinessBody {
  return {
    status: entry.status,
    checked_at: timeOrNull(checkedAt),
    duration_ms: durationMs,
    trigger: entry.trigger,
    cli: entry.cli,
    ...accountIn(entry),
    adapter: entry.adapter,
    version: entry.version,
    ...(error !== null && { error }),
  };
}

/** Returns the checks of all CLIs, oldest first; with `since` (milliseconds since the epoch) only later ones. */
export function historyOf(clis: readonly Pick<ModelCli, 'health'>[], since: number | null): readonly ReadinessEntry[] {
  const entries = clis.flatMap(({ health }) => health.checks.history(since));
  return clis.length === 1 ? entries : entries.sort((a, b) => (a.checkedAt ?? 0) - (b.checkedAt ?? 0));
}

/** Returns the number of processes of all CLIs, by state. */
export function countsOf(clis: readonly Pick<ModelCli, 'pool'>[]): ReturnType<ModelCli['pool']['counts']> {
  const sum = { standby: 0, renewed: 0, live: 0, tools: 0, busy: 0, stopping: 0 };
  for (const { pool } of clis) {
    const counts = pool.counts();
    for (const state of Object.keys(sum) as (keyof typeof sum)[]) sum[state] += counts[state];
  }
  return sum;
}

const allClosed: CircuitStatus = { state: 'closed', model: null, reason: null, since: null, until: null };

/**
 * Returns the circuit for all jobs, then each model's open circuit. With several CLIs, the account circuit of a CLI is
 * listed under its name.
 */
export function breakerBodyOf(clis: AtLeastOne<CircuitCli>): BreakerBody {
  const [account, ...models] =
    clis.length === 1 ? clis[0].health.circuits.status : [allClosed, ...clis.flatMap(openedBy)];
  const windows = clis.flatMap(({ health, names }) =>
    health.windows.current.map((window) => ({ ...window, ...accountIn(names) })),
  );
  return {
    ...circuitBodyOf(account),
    models: models.map((status) => ({ model: status.model ?? '', ...accountIn(status), ...circuitBodyOf(status) })),
    windows: windows.map(({ resetsAt, ...window }) => ({ ...window, resets_at: timeOrNull(resetsAt) })),
  };
}

type CircuitCli = Pick<ModelCli, 'name' | 'names' | 'health' | 'publicName'>;
type NamedCircuit = CircuitStatus & Pick<LoginNames, 'account'>;

function openedBy(cli: CircuitCli): NamedCircuit[] {
  const opened = cli.health.circuits.status.filter(({ state }) => state !== 'closed');
  const model = (status: CircuitStatus) => cli.publicName(status.model) ?? cli.name;
  return opened.map((status) => ({ ...status, model: model(status), ...accountIn(cli.names) }));
}

function accountIn({ account }: LoginNames | NamedCircuit) {
  return account === undefined ? {} : { account };
}

function circuitBodyOf({ state, reason, since, until }: CircuitStatus) {
  return {
    state,
    ...(reason !== null && { reason }),
    ...(since !== null && { since: timestamp(since) }),
    ...(until !== null && { until: timestamp(until) }),
  };
}

function timeOrNull(at: number | null): string | null {
  return at === null ? null : timestamp(at);
}

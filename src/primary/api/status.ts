import type { HealthBody, HistoryBody } from '../../shared/api/health.js';
import type { VersionBody } from '../../shared/api/version.js';
import { timestamp } from '../../shared/clock.js';
import type { Config } from '../../shared/config/config.js';
import type { Phase } from '../../shared/phase.js';
import type { ModelCli } from '../cli/model-cli.js';
import type { Fleet } from '../fleet/fleet.js';
import type { JobRunner } from '../jobs/job-runner.js';
import type { SlotQueue } from '../jobs/slot-queue.js';
import type { Host } from '../lifecycle/host.js';
import type { Breaker } from '../limits/breaker.js';
import type { PrimaryMetrics } from '../metrics/primary-metrics.js';
import type { Readiness } from '../readiness/readiness.js';
import { breakerBodyOf, readinessBodyOf } from './bodies.js';

/** The owners of what is shown. */
export interface StatusSources {
  readonly supervisor: { readonly phase: Phase };
  readonly slots: SlotQueue;
  readonly breaker: Pick<Breaker, 'status' | 'windows'>;
  readonly metrics: Pick<PrimaryMetrics, 'jobs'>;
  readonly runner: Pick<JobRunner, 'running'>;
  readonly fleet: Pick<Fleet, 'snapshot'>;
  readonly cli: Pick<ModelCli, 'adapter' | 'program' | 'pool'>;
  readonly readiness: Readiness;
  readonly store: { readonly isUp: boolean };
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
    const { readiness, config } = this.#sources;
    return {
      status: this.word,
      strict_mode: config.strictHealth,
      readiness: { model_cli: readinessBodyOf(readiness.current) },
      observability: this.#observability(withPids),
    };
  }

  /** Whether the service takes jobs, as GET /health tells by its status code. */
  get isUsable(): boolean {
    const { readiness, config } = this.#sources;
    return this.word !== 'draining' && (!config.strictHealth || readiness.current.status === 'ready');
  }

  history(since: number | null, withPids: boolean): HistoryBody {
    return {
      observability: this.#observability(withPids),
      history: this.#sources.readiness.history(since).map(readinessBodyOf),
    };
  }

  version(): VersionBody {
    const { host, cli } = this.#sources;
    return {
      name: 'prompt-relay',
      ...host.product,
      node: process.version,
      model_cli: { adapter: cli.adapter.name, version: cli.program.version },
      termination: host.termination.containments.means,
      uptime_seconds: this.#uptimeSeconds,
    };
  }

  /** How the service is, in one word. */
  get word(): HealthBody['status'] {
    const { supervisor, readiness, store } = this.#sources;
    if (supervisor.phase === 'draining' || supervisor.phase === 'stopped') return 'draining';
    return readiness.current.status === 'ready' && store.isUp ? 'ok' : 'degraded';
  }

  #observability(withPids: boolean): HealthBody['observability'] {
    const { slots, breaker, metrics, runner, fleet, cli } = this.#sources;
    return {
      started_at: this.startedAt,
      uptime_seconds: this.#uptimeSeconds,
      model_runtime: {
        active_requests: slots.active,
        queued_requests: slots.waiting,
        active_ages_ms: runner.running.map(({ executionMs }) => executionMs),
        max_concurrent: slots.limits.maxActive,
        max_queue: slots.limits.maxWaiting,
        rejected_total: metrics.jobs.rejected,
        queue_timeouts_total: metrics.jobs.queueTimeouts,
        breaker: breakerBodyOf(breaker),
      },
      cli_processes: cli.pool.counts(),
      workers: withPids ? fleet.snapshot() : fleet.snapshot().map(({ pid: _, ...worker }) => worker),
    };
  }

  get #uptimeSeconds(): number {
    return Math.round(this.#sources.host.clock.monotonicMs() - this.#startedMs) / 1000;
  }
}

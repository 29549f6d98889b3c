import type { HealthBody, HistoryBody, ReadinessBody } from '../shared/api/health.js';
import type { VersionBody } from '../shared/api/version.js';
import { type Clock, timestamp } from '../shared/clock.js';
import type { Phase } from '../shared/phase.js';
import type { ReadinessEntry } from '../shared/readiness.js';
import type { Shelf } from './cli/shelf.js';
import type { Fleet } from './fleet/fleet.js';
import type { JobRunner } from './jobs/job-runner.js';
import type { SlotQueue } from './jobs/slot-queue.js';
import type { JobMetrics } from './metrics/job-metrics.js';
import type { Readiness } from './readiness/readiness.js';

/** The owners of the figures that are shown. */
export interface StatusSources {
  readonly phase: () => Phase;
  readonly slots: SlotQueue;
  readonly jobs: JobMetrics;
  readonly runner: Pick<JobRunner, 'ages'>;
  readonly fleet: () => Fleet;
  readonly shelf: Pick<Shelf, 'counts'>;
  readonly readiness: Readiness;
  readonly strictHealth: boolean;
  readonly product: { readonly version: string; readonly commit: string | null };
  readonly cli: () => { readonly adapter: string; readonly version: string | null };
}

/** Puts the answers of GET /health and GET /version together, from state alone. */
export class Status {
  readonly #sources: StatusSources;
  readonly #clock: Clock;
  readonly #startedAt: string;
  readonly #startedMs: number;

  constructor(sources: StatusSources, clock: Clock) {
    this.#sources = sources;
    this.#clock = clock;
    this.#startedAt = timestamp(clock.now());
    this.#startedMs = clock.monotonicMs();
  }

  health(): HealthBody {
    const { readiness, strictHealth } = this.#sources;
    return {
      status: this.#status(),
      strict_mode: strictHealth,
      readiness: { model_cli: bodyOf(readiness.current) },
      observability: this.#observability(),
    };
  }

  /** Whether the service takes jobs, as GET /health tells by its status code. */
  get isUsable(): boolean {
    const { readiness, strictHealth } = this.#sources;
    return this.#status() !== 'draining' && (!strictHealth || readiness.current.status === 'ready');
  }

  history(since: number | null): HistoryBody {
    return {
      observability: this.#observability(),
      history: this.#sources.readiness.history(since).map(bodyOf),
    };
  }

  version(): VersionBody {
    const { product, cli } = this.#sources;
    return {
      name: 'prompt-relay',
      version: product.version,
      commit: product.commit,
      node: process.version,
      model_cli: cli(),
      uptime_seconds: this.#uptimeSeconds(),
    };
  }

  #status(): HealthBody['status'] {
    const { phase, readiness } = this.#sources;
    if (phase() === 'draining' || phase() === 'stopped') return 'draining';
    return readiness.current.status === 'ready' ? 'ok' : 'degraded';
  }

  #observability(): HealthBody['observability'] {
    const { slots, jobs, runner, fleet, shelf } = this.#sources;
    return {
      started_at: this.#startedAt,
      uptime_seconds: this.#uptimeSeconds(),
      model_runtime: {
        active_requests: slots.active,
        queued_requests: slots.waiting,
        active_ages_ms: runner.ages,
        max_concurrent: slots.limits.maxActive,
        max_queue: slots.limits.maxWaiting,
        rejected_total: jobs.rejected,
        queue_timeouts_total: jobs.queueTimeouts,
      },
      cli_processes: shelf.counts(),
      workers: fleet().snapshot(),
    };
  }

  #uptimeSeconds(): number {
    return Math.round(this.#clock.monotonicMs() - this.#startedMs) / 1000;
  }
}

function bodyOf(entry: ReadinessEntry): ReadinessBody {
  return {
    status: entry.status,
    checked_at: entry.checkedAt === null ? null : timestamp(entry.checkedAt),
    duration_ms: entry.durationMs,
    trigger: entry.trigger,
    adapter: entry.adapter,
    version: entry.version,
    ...(entry.error !== null && { error: entry.error }),
  };
}

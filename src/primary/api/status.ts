import type { HealthBody, HistoryBody, PressureBody, ReasonBody } from '../../shared/api/health.js';
import type { VersionBody } from '../../shared/api/version.js';
import { timestamp } from '../../shared/clock.js';
import type { Config } from '../../shared/config/config.js';
import type { Phase } from '../../shared/phase.js';
import type { ModelCli } from '../cli/model-cli.js';
import type { AtLeastOne } from '../cli/models.js';
import type { ModelRouter } from '../cli/route.js';
import type { Fleet } from '../fleet/fleet.js';
import type { JobRunner } from '../jobs/job-runner.js';
import type { SlotQueue } from '../jobs/slot-queue.js';
import type { Host } from '../lifecycle/host.js';
import type { LastHour } from '../metrics/last-hour.js';
import type { PrimaryMetrics } from '../metrics/primary-metrics.js';
import type { Store } from '../store/contract/store.js';
import { breakerBodyOf, countsOf, historyOf, readinessBodyOf } from './bodies.js';
import { degradedReasons } from './reasons.js';

/** The owners of what is shown. */
export interface StatusSources {
  readonly supervisor: { readonly phase: Phase };
  readonly slots: Pick<SlotQueue, 'active' | 'waiting' | 'limits' | 'fullSince'>;
  readonly lastHour: Pick<LastHour, 'recentlyRefused'>;
  readonly metrics: Pick<PrimaryMetrics, 'jobs'>;
  readonly runner: Pick<JobRunner, 'running'>;
  readonly fleet: Pick<Fleet, 'snapshot'>;
  readonly clis: AtLeastOne<ModelCli>;
  readonly router: Pick<ModelRouter, 'choice' | 'usual'>;
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
    const all = clis.length > 1 && { model_clis: clis.map(({ readiness }) => readinessBodyOf(readiness.current)) };
    return {
      status: this.word,
      reasons: [...this.reasons],
      strict_mode: config.strictHealth,
      readiness: { model_cli: readinessBodyOf(clis[0].readiness.current), ...all },
      store: { kind: store.kind, up: store.isUp },
      observability: this.#observability(withPids),
    };
  }

  /** Whether the service takes jobs, as GET /health tells by its status code. */
  get isUsable(): boolean {
    const { clis, config } = this.#sources;
    const isAnyReady = clis.some(({ readiness }) => readiness.current.status === 'ready');
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
    const { slots, lastHour } = this.#sources;
    const { fullSince } = slots;
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
    const { slots, metrics, runner, fleet, clis } = this.#sources;
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
        ...this.pressure,
        breaker: breakerBodyOf(clis),
      },
      cli_processes: countsOf(clis),
      workers: withPids ? fleet.snapshot() : fleet.snapshot().map(({ pid: _, ...worker }) => worker),
    };
  }

  get #uptimeSeconds(): number {
    return Math.round(this.#sources.host.clock.monotonicMs() - this.#startedMs) / 1000;
  }
}

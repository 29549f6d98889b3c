import { type Counter, type Gauge, type Histogram, Registry } from 'prom-client';
import { type RemovalCause, removalCauses } from '../../shared/conversation.js';
import type { DoorNames } from '../../shared/features/feature.js';
import { type LoginNames, type ReadinessEntry, readinessTriggers } from '../../shared/health.js';
import type { Logger } from '../../shared/log/logger.js';
import { addProcessMetrics, counter, gauge, histogram } from '../../shared/metrics.js';
import type { CliObserver } from '../cli/contract/observer.js';
import type { ModelCli } from '../cli/model-cli.js';
import type { ConversationStore } from '../conversations/conversation-store.js';
import type { WaitingRoom } from '../jobs/waiting-room.js';
import type { StoreObserver, StoreOperation } from '../store/contract/store.js';
import { type RestartCause, restartCauses } from '../workers/worker-handle.js';
import { cliMetrics } from './cli-metrics.js';
import { ClientMetrics, JobMetrics } from './job-metrics.js';
import { addMetric } from './state-metrics.js';

/** Owns the counters of created and removed conversations. */
export class ConversationMetrics {
  readonly #removed: Counter<'cause'>;

  constructor(registry: Registry, created: () => number) {
    addMetric(registry, 'conversations_created_total', created);
    this.#removed = counter(registry, 'conversations_removed_total');
    for (const cause of removalCauses) this.#removed.inc({ cause }, 0);
  }

  countRemoval(cause: RemovalCause): void {
    this.#removed.inc({ cause });
  }
}

/** Owns the figures of readiness checks. */
export class ReadinessMetrics {
  readonly #checks: Counter<'cli' | 'account' | 'result' | 'trigger'>;
  readonly #durations: Histogram<'cli' | 'account'>;
  readonly #ready: Gauge<'cli' | 'account'>;
  readonly #lastCheck: Gauge<'cli' | 'account'>;

  /** `clis`: names of the model CLIs. */
  constructor(registry: Registry, clis: readonly string[]) {
    this.#checks = counter(registry, 'readiness_checks_total');
    this.#durations = histogram(registry, 'readiness_check_duration_seconds');
    this.#ready = gauge(registry, 'ready');
    this.#lastCheck = gauge(registry, 'readiness_last_check_timestamp_seconds');
    for (const cli of clis) {
      this.#ready.set({ cli }, 0);
      this.#lastCheck.set({ cli }, 0);
      this.#durations.zero({ cli });
      for (const result of ['ready', 'not_ready']) {
        for (const trigger of readinessTriggers) this.#checks.inc({ cli, result, trigger }, 0);
      }
    }
  }

  recordCheck(entry: ReadinessEntry): void {
    const { status, trigger, durationMs, checkedAt } = entry;
    const { cli: name, account } = entry;
    const cli = { cli: name, ...(account !== undefined && { account }) };
    this.#checks.inc({ ...cli, result: status, trigger });
    this.#durations.observe(cli, durationMs / 1000);
    this.#ready.set(cli, status === 'ready' ? 1 : 0);
    this.#lastCheck.set(cli, (checkedAt ?? 0) / 1000);
  }

  /** Removes the gauges of an account that is no longer in use. Its counters stay, because counters never decrease. */
  removeCli({ names }: Pick<ModelCli, 'names'>): void {
    for (const gauge of [this.#ready, this.#lastCheck]) gauge.remove({ ...names });
  }
}

/** Owns the durations of store operations. The store in memory is not measured. */
export class StoreMetrics {
  readonly #seconds: Histogram<'operation'>;

  constructor(registry: Registry) {
    this.#seconds = histogram(registry, 'store_operation_seconds');
  }

  done(operation: StoreOperation, ms: number): void {
    this.#seconds.observe({ operation }, ms / 1000);
  }
}

/** Returns the observer that measures the store, and logs when it fails or recovers. */
export function storeListener(log: Logger, metrics: { readonly store: Pick<StoreMetrics, 'done'> }): StoreObserver {
  return {
    done: (operation, ms) => metrics.store.done(operation, ms),
    down: (error) => log.error('store_down', { error }),
    back: () => log.info('store_back'),
    warned: (error) => log.warn('store_warning', { error }),
  };
}

/** Owns the registry of the primary: all figures except HTTP, which each worker counts. */
export class PrimaryMetrics {
  readonly registry = new Registry();
  readonly jobs: JobMetrics;
  readonly clients: ClientMetrics;
  readonly conversations: ConversationMetrics;
  readonly readiness: ReadinessMetrics;
  readonly store: StoreMetrics;
  readonly cliOf: (names: LoginNames) => CliObserver;
  readonly #restarts: Counter<'cause'>;
  readonly #scrapeFailures: Counter;

  /** Figures that `room` and `conversations` count are read from them at each scrape. */
  constructor(
    room: Pick<WaitingRoom, 'refused' | 'refusedByBound' | 'waitingByClient'>,
    conversations: Pick<ConversationStore, 'refused' | 'counts'>,
    clis: readonly string[] = [],
    doorNames?: DoorNames,
  ) {
    const refusals = () => ({
      queue_full: room.refused,
      client_bound: room.refusedByBound,
      conversations_busy: conversations.refused,
    });
    this.jobs = new JobMetrics(this.registry, refusals, clis, doorNames);
    this.clients = new ClientMetrics(this.registry, () => room.waitingByClient);
    this.conversations = new ConversationMetrics(this.registry, () => conversations.counts.created);
    this.readiness = new ReadinessMetrics(this.registry, clis);
    this.store = new StoreMetrics(this.registry);
    this.cliOf = cliMetrics(this.registry);
    this.#restarts = counter(this.registry, 'worker_restarts_total');
    this.#scrapeFailures = counter(this.registry, 'worker_scrape_failures_total');
    for (const cause of restartCauses) this.#restarts.inc({ cause }, 0);
    addProcessMetrics(this.registry, 'primary');
  }

  countRestart(cause: RestartCause): void {
    this.#restarts.inc({ cause });
  }

  countScrapeFailure(): void {
    this.#scrapeFailures.inc();
  }
}

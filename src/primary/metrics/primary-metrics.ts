import { type Counter, Registry } from 'prom-client';
import { addProcessMetrics, counter } from '../../shared/metrics/families.js';
import type { CliObserver } from '../cli/contract/observer.js';
import type { ConversationStore } from '../conversations/conversation-store.js';
import type { SlotQueue } from '../jobs/slot-queue.js';
import { type RestartCause, restartCauses } from '../workers/worker-handle.js';
import { cliMetrics } from './cli-metrics.js';
import { ClientMetrics } from './client-metrics.js';
import { ConversationMetrics } from './conversation-metrics.js';
import { JobMetrics } from './job-metrics.js';
import { ReadinessMetrics } from './readiness-metrics.js';
import { StoreMetrics } from './store-metrics.js';

/** Owns the primary's registry: everything but HTTP, which each worker counts for itself. */
export class PrimaryMetrics {
  readonly registry = new Registry();
  readonly jobs: JobMetrics;
  readonly clients: ClientMetrics;
  readonly conversations: ConversationMetrics;
  readonly readiness: ReadinessMetrics;
  readonly store: StoreMetrics;
  /** By the name of a CLI. */
  readonly cliOf: (name: string) => CliObserver;
  readonly #restarts: Counter<'cause'>;
  readonly #scrapeFailures: Counter;

  /** What they have counted themselves is read from `slots` and `conversations` at each scrape. */
  constructor(
    slots: Pick<SlotQueue, 'refused' | 'refusedByBound' | 'waitingByClient'>,
    conversations: Pick<ConversationStore, 'refused' | 'counts'>,
    keyNames: readonly string[] = [],
    clis: readonly string[] = [],
  ) {
    this.jobs = new JobMetrics(this.registry, () => ({
      queue_full: slots.refused,
      client_bound: slots.refusedByBound,
      conversations_busy: conversations.refused,
    }));
    this.clients = new ClientMetrics(this.registry, keyNames, () => slots.waitingByClient);
    this.conversations = new ConversationMetrics(this.registry, () => conversations.counts.created);
    this.readiness = new ReadinessMetrics(this.registry, clis);
    this.store = new StoreMetrics(this.registry);
    this.cliOf = cliMetrics(this.registry);
    const restarts = 'Workers started in the place of another, by cause.';
    this.#restarts = counter(this.registry, 'worker_restarts_total', restarts, 'cause');
    const failures = 'Workers that did not answer a scrape in time; their last figures were shown.';
    this.#scrapeFailures = counter(this.registry, 'worker_scrape_failures_total', failures);
    for (const cause of restartCauses) this.#restarts.inc({ cause }, 0);
    addProcessMetrics(this.registry, 'primary');
  }

  workerRestarted(cause: RestartCause): void {
    this.#restarts.inc({ cause });
  }

  scrapeFailed(): void {
    this.#scrapeFailures.inc();
  }
}

import { type Counter, Registry } from 'prom-client';
import { counter } from '../../shared/metrics.js';
import { addProcessMetrics } from '../../shared/process-metrics.js';
import { type RestartCause, restartCauses } from '../fleet/seat.js';
import { CliMetrics } from './cli-metrics.js';
import { ConversationMetrics } from './conversation-metrics.js';
import { JobMetrics, type Refusals } from './job-metrics.js';
import { ReadinessMetrics } from './readiness-metrics.js';

/** Owns the primary's registry: everything but HTTP, which each worker counts for itself. */
export class PrimaryMetrics {
  readonly registry = new Registry();
  readonly jobs: JobMetrics;
  readonly conversations: ConversationMetrics;
  readonly readiness: ReadinessMetrics;
  readonly cli: CliMetrics;
  readonly #restarts: Counter<'cause'>;
  readonly #scrapeFailures: Counter;

  /** The figures that have an owner elsewhere are read when they are asked for. */
  constructor(owners: { readonly jobsRefused: () => Refusals; readonly conversationsCreated: () => number }) {
    this.jobs = new JobMetrics(this.registry, owners.jobsRefused);
    this.conversations = new ConversationMetrics(this.registry, owners.conversationsCreated);
    this.readiness = new ReadinessMetrics(this.registry);
    this.cli = new CliMetrics(this.registry);
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

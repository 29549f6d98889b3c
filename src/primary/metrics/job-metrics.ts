import type { Counter, Histogram, Registry } from 'prom-client';
import { type JobEnd, type JobRequest, operations, outcomes } from '../../shared/job.js';
import { counter, histogram } from '../../shared/metrics.js';
import { addCounter, addLabelledCounter } from './state-metrics.js';

const durationBuckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];
const waitBuckets = [0.001, 0.01, 0.1, 0.5, 1, 2.5, 5, 10, 15, 30, 60, 120, 600];

/** Jobs that were not admitted since the start, by what there was no room in. */
export type Refusals = Readonly<Record<'queue_full' | 'conversations_busy', number>>;

/** Owns what is counted of jobs. `/health` shows `rejected` and `queueTimeouts`: these very numbers. */
export class JobMetrics {
  readonly #jobs: Counter<'operation' | 'outcome'>;
  readonly #durations: Histogram<'operation' | 'outcome'>;
  readonly #waits: Histogram<'outcome'>;
  readonly #tokens: Counter<'direction'>;
  readonly #firstDeltas: Histogram<'operation'>;
  readonly #rateLimited: Counter;
  readonly #refused: () => Refusals;
  #refusedDraining = 0;
  #queueTimeouts = 0;

  constructor(registry: Registry, refused: () => Refusals) {
    this.#refused = refused;
    this.#jobs = counter(registry, 'jobs_total', 'Jobs that were admitted and have ended.', 'operation', 'outcome');
    this.#durations = histogram(
      registry,
      'job_duration_seconds',
      'Time from the admission of a job to its end, waiting included.',
      durationBuckets,
      'operation',
      'outcome',
    );
    const waits = 'Time a job waited for its slot, by how the waiting ended.';
    this.#waits = histogram(registry, 'queue_wait_seconds', waits, waitBuckets, 'outcome');
    this.#tokens = counter(registry, 'tokens_total', 'Tokens of answered jobs, as the CLI reports them.', 'direction');
    const firsts = 'Time from the slot of a job to the first text of its answer.';
    this.#firstDeltas = histogram(registry, 'time_to_first_delta_seconds', firsts, durationBuckets, 'operation');
    this.#rateLimited = counter(
      registry,
      'rate_limited_total',
      'Requests refused: their address had used up its window.',
    );
    this.#addRefusals(registry);
    this.#addZeros();
  }

  get rejected(): number {
    return Object.values(this.#refusals()).reduce((sum, count) => sum + count, 0);
  }

  get queueTimeouts(): number {
    return this.#queueTimeouts;
  }

  jobStarted(queueMs: number): void {
    this.#waits.observe({ outcome: 'started' }, queueMs / 1000);
  }

  firstDelta({ operation }: JobRequest, ms: number): void {
    this.#firstDeltas.observe({ operation }, ms / 1000);
  }

  jobEnded({ operation }: JobRequest, end: JobEnd, hadSlot: boolean): void {
    const { outcome, queueMs, executionMs } = end;
    this.#jobs.inc({ operation, outcome });
    this.#durations.observe({ operation, outcome }, (queueMs + executionMs) / 1000);
    if (outcome === 'queue_timeout') this.#queueTimeouts++;
    if (!hadSlot)
      this.#waits.observe({ outcome: outcome === 'queue_timeout' ? 'timeout' : 'cancelled' }, queueMs / 1000);
    if (outcome !== 'ok') return;
    this.#tokens.inc({ direction: 'input' }, end.usage.inputTokens ?? 0);
    this.#tokens.inc({ direction: 'output' }, end.usage.outputTokens ?? 0);
  }

  refusedDraining(): void {
    this.#refusedDraining++;
  }

  rateLimited(): void {
    this.#rateLimited.inc();
  }

  #refusals() {
    return { ...this.#refused(), draining: this.#refusedDraining };
  }

  #addRefusals(registry: Registry): void {
    addLabelledCounter(registry, 'rejected_total', 'Jobs refused before they were admitted.', 'reason', () =>
      this.#refusals(),
    );
    addCounter(
      registry,
      'queue_timeouts_total',
      'Jobs that waited for a slot longer than the queue time-out.',
      () => this.#queueTimeouts,
    );
  }

  #addZeros(): void {
    for (const operation of operations) {
      this.#firstDeltas.zero({ operation });
      for (const outcome of outcomes) {
        this.#jobs.inc({ operation, outcome }, 0);
        this.#durations.zero({ operation, outcome });
      }
    }
    for (const outcome of ['started', 'timeout', 'cancelled']) this.#waits.zero({ outcome });
    for (const direction of ['input', 'output']) this.#tokens.inc({ direction }, 0);
  }
}

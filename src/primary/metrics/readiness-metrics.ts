import type { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { counter, gauge, histogram } from '../../shared/metrics/families.js';
import { type ReadinessEntry, readinessTriggers } from '../../shared/readiness.js';

const checkBuckets = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20];

/** Owns what is counted of readiness checks. */
export class ReadinessMetrics {
  readonly #checks: Counter<'result' | 'trigger'>;
  readonly #durations: Histogram;
  readonly #ready: Gauge;
  readonly #lastCheck: Gauge;

  constructor(registry: Registry) {
    const checks = 'Readiness checks of the model CLI, by result and by what caused them.';
    this.#checks = counter(registry, 'readiness_checks_total', checks, 'result', 'trigger');
    const durations = 'Time a readiness check took.';
    this.#durations = histogram(registry, 'readiness_check_duration_seconds', durations, checkBuckets);
    this.#ready = gauge(registry, 'ready', '1 when the last readiness check found the model CLI ready.');
    const lastCheck = 'When the last readiness check began, seconds since the epoch; 0 before the first.';
    this.#lastCheck = gauge(registry, 'readiness_last_check_timestamp_seconds', lastCheck);
    for (const result of ['ready', 'not_ready']) {
      for (const trigger of readinessTriggers) this.#checks.inc({ result, trigger }, 0);
    }
  }

  checked(entry: ReadinessEntry): void {
    this.#checks.inc({ result: entry.status, trigger: entry.trigger });
    this.#durations.observe(entry.durationMs / 1000);
    this.#ready.set(entry.status === 'ready' ? 1 : 0);
    this.#lastCheck.set((entry.checkedAt ?? 0) / 1000);
  }
}

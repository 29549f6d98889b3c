import type { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { type ReadinessEntry, readinessTriggers } from '../../shared/health.js';
import { counter, gauge, histogram } from '../../shared/metrics/families.js';

const checkBuckets = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20];

/** Owns what is counted of readiness checks. */
export class ReadinessMetrics {
  readonly #checks: Counter<'cli' | 'result' | 'trigger'>;
  readonly #durations: Histogram<'cli'>;
  readonly #ready: Gauge<'cli'>;
  readonly #lastCheck: Gauge<'cli'>;

  /** `clis`: their names. */
  constructor(registry: Registry, clis: readonly string[]) {
    const checks = 'Readiness checks of the model CLI, by result and by what caused them.';
    this.#checks = counter(registry, 'readiness_checks_total', checks, 'cli', 'result', 'trigger');
    const durations = 'Time a readiness check took.';
    this.#durations = histogram(registry, 'readiness_check_duration_seconds', durations, checkBuckets, 'cli');
    this.#ready = gauge(registry, 'ready', '1 when the last readiness check found the model CLI ready.', 'cli');
    const lastCheck = 'When the last readiness check began, seconds since the epoch; 0 before the first.';
    this.#lastCheck = gauge(registry, 'readiness_last_check_timestamp_seconds', lastCheck, 'cli');
    for (const cli of clis) {
      this.#ready.set({ cli }, 0);
      this.#lastCheck.set({ cli }, 0);
      this.#durations.zero({ cli });
      for (const result of ['ready', 'not_ready']) {
        for (const trigger of readinessTriggers) this.#checks.inc({ cli, result, trigger }, 0);
      }
    }
  }

  checked(entry: ReadinessEntry): void {
    const { cli, status, trigger, durationMs, checkedAt } = entry;
    this.#checks.inc({ cli, result: status, trigger });
    this.#durations.observe({ cli }, durationMs / 1000);
    this.#ready.set({ cli }, status === 'ready' ? 1 : 0);
    this.#lastCheck.set({ cli }, (checkedAt ?? 0) / 1000);
  }
}

import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { metricPrefix } from '../../shared/metric-names.js';
import { type ReadinessEntry, readinessTriggers } from '../../shared/readiness.js';

const checkBuckets = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20];

/** Owns what is counted of readiness checks. */
export class ReadinessMetrics {
  readonly #checks: Counter<'result' | 'trigger'>;
  readonly #durations: Histogram;
  readonly #ready: Gauge;
  readonly #lastCheck: Gauge;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#checks = new Counter({
      name: `${metricPrefix}readiness_checks_total`,
      help: 'Readiness checks of the model CLI, by result and by what caused them.',
      labelNames: ['result', 'trigger'],
      registers,
    });
    this.#durations = new Histogram({
      name: `${metricPrefix}readiness_check_duration_seconds`,
      help: 'Time a readiness check took.',
      buckets: checkBuckets,
      registers,
    });
    this.#ready = new Gauge({
      name: `${metricPrefix}ready`,
      help: '1 when the last readiness check found the model CLI ready.',
      registers,
    });
    this.#lastCheck = new Gauge({
      name: `${metricPrefix}readiness_last_check_timestamp_seconds`,
      help: 'When the last readiness check began, seconds since the epoch; 0 before the first.',
      registers,
    });
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

import type { Registry } from 'prom-client';
import type { Breaker } from '../limits/breaker.js';
import { addCounter, addGauge } from './state-metrics.js';

export type BreakerFigures = Pick<Breaker, 'openFor' | 'openings' | 'utilization'>;

/** Each figure is read from the breaker at a scrape. */
export function addBreakerMetrics(registry: Registry, breaker: BreakerFigures): void {
  const open = '1 while jobs are held back, by the reason: the quota is used up, or the credential is refused.';
  addGauge(registry, 'breaker_open', open, () => breaker.openFor, 'reason');
  const openings = 'Times that jobs began to be held back, failed probes included, by the reason.';
  addCounter(registry, 'breaker_openings_total', openings, () => breaker.openings, 'reason');
  const used = "Used share of each window of the account's quota, as the model CLI last told; 0 where it did not.";
  addGauge(registry, 'quota_utilization_ratio', used, () => breaker.utilization, 'window');
}

import type { Registry } from 'prom-client';
import { addCounter, addGauge, type Figures } from './state-metrics.js';

type BreakerFigure = 'openFor' | 'openings' | 'utilization';

/** `read`: a figure of the breaker of each CLI, by its name; read at a scrape. */
export function addBreakerMetrics(registry: Registry, read: (figure: BreakerFigure) => Figures): void {
  const open = '1 while jobs are held back, by the reason: the quota is used up, or the credential is refused.';
  addGauge(registry, 'breaker_open', open, () => read('openFor'), 'cli', 'reason');
  const openings = 'Times that jobs began to be held back, failed probes included, by the reason.';
  addCounter(registry, 'breaker_openings_total', openings, () => read('openings'), 'cli', 'reason');
  const used = "Used share of each window of the account's quota, as the model CLI last told; 0 where it did not.";
  addGauge(registry, 'quota_utilization_ratio', used, () => read('utilization'), 'cli', 'window');
}

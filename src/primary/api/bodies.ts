import type { BreakerBody, ReadinessBody } from '../../shared/api/health.js';
import { timestamp } from '../../shared/clock.js';
import type { ReadinessEntry } from '../../shared/readiness.js';
import type { Breakers } from '../limits/breakers.js';
import type { CircuitStatus } from '../limits/circuit.js';

/** How state is written in answers. */

/** One readiness check. */
export function readinessBodyOf({ checkedAt, durationMs, error, ...entry }: ReadinessEntry): ReadinessBody {
  return {
    status: entry.status,
    checked_at: checkedAt === null ? null : timestamp(checkedAt),
    duration_ms: durationMs,
    trigger: entry.trigger,
    cli: entry.cli,
    adapter: entry.adapter,
    version: entry.version,
    ...(error !== null && { error }),
  };
}

export function breakerBodyOf({
  status: [account, ...models],
  windows,
}: Pick<Breakers, 'status' | 'windows'>): BreakerBody {
  return {
    ...circuitBodyOf(account),
    models: models.map((status) => ({ model: status.model ?? '', ...circuitBodyOf(status) })),
    windows: windows.map(({ resetsAt, ...window }) => ({
      ...window,
      resets_at: resetsAt === null ? null : timestamp(resetsAt),
    })),
  };
}

function circuitBodyOf({ state, reason, since, until }: CircuitStatus) {
  return {
    state,
    ...(reason !== null && { reason }),
    ...(since !== null && { since: timestamp(since) }),
    ...(until !== null && { until: timestamp(until) }),
  };
}

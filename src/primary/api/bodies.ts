import type { BreakerBody, ReadinessBody } from '../../shared/api/health.js';
import { timestamp } from '../../shared/clock.js';
import type { ReadinessEntry } from '../../shared/readiness.js';
import type { ModelCli } from '../cli/model-cli.js';
import type { AtLeastOne } from '../cli/models.js';
import type { CircuitStatus } from '../limits/circuit.js';

/** How state is written in answers. */

const allClosed: CircuitStatus = { state: 'closed', model: null, reason: null, since: null, until: null };

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

/** The checks of all CLIs, oldest first; with `since` (milliseconds since the epoch) only what was checked strictly later. */
export function historyOf(
  clis: readonly Pick<ModelCli, 'readiness'>[],
  since: number | null,
): readonly ReadinessEntry[] {
  const entries = clis.flatMap(({ readiness }) => readiness.history(since));
  return clis.length === 1 ? entries : entries.sort((a, b) => (a.checkedAt ?? 0) - (b.checkedAt ?? 0));
}

/** The processes of all CLIs, by what they are doing. */
export function countsOf(clis: readonly Pick<ModelCli, 'pool'>[]): ReturnType<ModelCli['pool']['counts']> {
  const sum = { standby: 0, live: 0, busy: 0, stopping: 0 };
  for (const { pool } of clis) {
    const counts = pool.counts();
    for (const state of Object.keys(sum) as (keyof typeof sum)[]) sum[state] += counts[state];
  }
  return sum;
}

/** For all jobs, then for each model that is held; of several CLIs, an account that is held has the CLI's name. */
export function breakerBodyOf(clis: AtLeastOne<Pick<ModelCli, 'breaker' | 'publicName'>>): BreakerBody {
  const [account, ...models] = clis.length === 1 ? clis[0].breaker.status : [allClosed, ...clis.flatMap(heldBy)];
  const windows = clis.flatMap(({ breaker }) => breaker.windows);
  return {
    ...circuitBodyOf(account),
    models: models.map((status) => ({ model: status.model ?? '', ...circuitBodyOf(status) })),
    windows: windows.map(({ resetsAt, ...window }) => ({
      ...window,
      resets_at: resetsAt === null ? null : timestamp(resetsAt),
    })),
  };
}

function heldBy({ breaker, publicName }: Pick<ModelCli, 'breaker' | 'publicName'>): CircuitStatus[] {
  const held = breaker.status.filter(({ state }) => state !== 'closed');
  return held.map((status) => ({ ...status, model: publicName(status.model) }));
}

function circuitBodyOf({ state, reason, since, until }: CircuitStatus) {
  return {
    state,
    ...(reason !== null && { reason }),
    ...(since !== null && { since: timestamp(since) }),
    ...(until !== null && { until: timestamp(until) }),
  };
}

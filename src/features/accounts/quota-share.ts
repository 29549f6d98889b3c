import type { QuotaWindow, QuotaWindowName } from '../../shared/health.js';

const hourMs = 60 * 60_000;

/** Lengths of the windows that limit an account. */
const lengths: Partial<Readonly<Record<QuotaWindowName, number>>> = {
  five_hour: 5 * hourMs,
  seven_day: 7 * 24 * hourMs,
  seven_day_opus: 7 * 24 * hourMs,
  seven_day_sonnet: 7 * 24 * hourMs,
};

/** Models with a window of their own. */
const modelOf: Partial<Readonly<Record<QuotaWindowName, string>>> = {
  seven_day_opus: 'opus',
  seven_day_sonnet: 'sonnet',
};

/** Limits of a weight: no account gets so few jobs that a new report never comes, or nearly all of them. */
export const weightLimits = { min: 0.05, max: 4 } as const;
/** Weight of an account that has reported no quota. */
const unknownWeight = 1;
/** Share that is left of a window near its limit whose use is not reported. */
const leftAtWarning = 0.1;

/**
 * Returns how many jobs an account gets in relation to others: the quota that is left divided by the time until its
 * reset, both as parts of the window, for the scarcest window. `model`: name of the model at its CLI; '' if unknown.
 */
export function weightOf(windows: readonly QuotaWindow[], model: string, now: number): number {
  const shares = windows.flatMap((window) => {
    const { name, resetsAt } = window;
    const length = lengths[name];
    const left = leftOf(window);
    if (length === undefined || left === null || !model.includes(modelOf[name] ?? '')) return [];
    const timeLeft = resetsAt === null ? 1 : Math.min(1, Math.max(0.01, (resetsAt - now) / length));
    return [left / timeLeft];
  });
  const weight = shares.length === 0 ? unknownWeight : Math.min(...shares);
  return Math.min(weightLimits.max, Math.max(weightLimits.min, weight));
}

/** Returns the part of a window that is left; null if it is unknown. */
function leftOf({ status, utilization }: QuotaWindow): number | null {
  if (status === 'rejected') return 0;
  if (utilization !== null) return Math.max(0, 1 - utilization);
  return status === 'warning' ? leftAtWarning : null;
}

import type { QuotaReport, QuotaWindow } from '../../contract/adapter.js';
import type { CodexLimits } from './lines.js';

type CodexWindow = NonNullable<CodexLimits['primary']>;

const nameByMinutes: ReadonlyMap<number, QuotaWindow['name']> = new Map([
  [300, 'five_hour'],
  [10_080, 'seven_day'],
]);

const warningPercent = 90;

/** With an API key there are no windows to tell of. */
export function quotaReports(limits: CodexLimits): readonly QuotaReport[] {
  const windows = windowsOf(limits).map((window) => windowOf(window, limits.credits?.hasCredits === true));
  return windows.length === 0 ? [] : [{ type: 'quota-report', windows }];
}

/** When the last of the windows that are used up opens again, milliseconds since the epoch; null where that is not told. */
export function closedUntil(limits: CodexLimits): number | null {
  const times = windowsOf(limits).flatMap(({ usedPercent, resetsAt }) =>
    usedPercent >= 100 && resetsAt != null ? [resetsAt * 1000] : [],
  );
  return times.length === 0 ? null : Math.max(...times);
}

function windowsOf({ primary, secondary }: CodexLimits): readonly CodexWindow[] {
  return [primary, secondary].flatMap((window) => (window == null ? [] : [window]));
}

/** Beyond its limit a window is served from credits, where the account has some. */
function windowOf({ usedPercent, windowDurationMins, resetsAt }: CodexWindow, hasCredits: boolean): QuotaWindow {
  const isClosed = usedPercent >= 100 && !hasCredits;
  return {
    name: nameByMinutes.get(windowDurationMins ?? 0) ?? 'other',
    status: isClosed ? 'rejected' : usedPercent >= warningPercent ? 'warning' : 'allowed',
    utilization: usedPercent / 100,
    resetsAt: resetsAt == null ? null : resetsAt * 1000,
  };
}

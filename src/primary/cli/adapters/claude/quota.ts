import { type QuotaReport, type QuotaWindow, quotaWindowNames } from '../../contract/adapter.js';
import type { RateLimits } from './lines.js';

/** What a line tells of the account's windows. `status` at the top is about one of them; the others have their own. */
export function quotaReport(limits: RateLimits): QuotaReport {
  const { rateLimitType, unifiedWindows } = limits;
  const told = Object.entries(unifiedWindows ?? {}).map(([name, window]) => windowOf(name, window));
  const isTold = told.some(({ name }) => name === nameOf(rateLimitType ?? ''));
  return {
    type: 'quota-report',
    windows: isTold || !rateLimitType ? told : [...told, windowOf(rateLimitType, limits)],
  };
}

/** Whether the API refuses requests because of this: a closed window may be served beyond its limit. */
export function isRefusing({ status, isUsingOverage }: RateLimits): boolean {
  return status === 'rejected' && isUsingOverage !== true;
}

const ofOneModel: ReadonlySet<string> = new Set(['seven_day_opus', 'seven_day_sonnet', 'seven_day_overage_included']);

/** A refusal without a window comes from a limit by the minute, which the API counts for each model apart. */
export function refusalOf({ rateLimitType, resetsAt }: RateLimits) {
  const isOfModel = rateLimitType == null || ofOneModel.has(rateLimitType);
  return { scope: isOfModel ? 'model' : 'account', resetsAt: epochMs(resetsAt) } as const;
}

type ToldWindow = Pick<RateLimits, 'status' | 'utilization' | 'resetsAt'>;

function windowOf(name: string, { status, utilization, resetsAt }: ToldWindow): QuotaWindow {
  return {
    name: nameOf(name),
    status: status === 'rejected' ? 'rejected' : status === 'allowed_warning' ? 'warning' : 'allowed',
    utilization: utilization ?? null,
    resetsAt: epochMs(resetsAt),
  };
}

function nameOf(name: string): QuotaWindow['name'] {
  return quotaWindowNames.find((known) => known === name) ?? 'other';
}

function epochMs(seconds: number | null | undefined): number | null {
  return seconds == null ? null : seconds * 1000;
}

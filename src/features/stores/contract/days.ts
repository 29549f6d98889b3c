import type { CalendarPeriod } from '../../../shared/api/limit-use.js';

/** Returns the last day of a month such as `2026-01`. */
export function lastDayOf(month: string): string {
  const [year = 0, number = 0] = month.split('-').map(Number);
  return new Date(Date.UTC(year, number, 0)).toISOString().slice(0, 10);
}

/** Returns the start of the period that contains a time. */
export function periodStart(period: CalendarPeriod, nowMs: number): number {
  return startOf(period, new Date(nowMs), 0);
}

/** Returns the end of the period that contains a time. */
export function periodEnd(period: CalendarPeriod, nowMs: number): number {
  return startOf(period, new Date(nowMs), 1);
}

/** Returns the start of a period that begins `later` periods after that of a date. */
function startOf(period: CalendarPeriod, date: Date, later: number): number {
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()];
  if (period === 'month') return Date.UTC(year, month + later);
  if (period === 'day') return Date.UTC(year, month, day + later);
  const daysSinceMonday = (date.getUTCDay() + 6) % 7;
  return Date.UTC(year, month, day - daysSinceMonday + 7 * later);
}

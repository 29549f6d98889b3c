import { accountLine } from '../../../../src/command/render/model-cli.js';
import type { BreakerBody } from '../../../../src/shared/api/health.js';
import { paintFor } from '../../../../src/shared/text/paint.js';

const now = Date.parse('2026-01-31T12:00:00.000Z');
const inTenMinutes = '2026-01-31T12:10:00.000Z';
const closed: BreakerBody = { state: 'closed', models: [], windows: [] };

function line(breaker: Partial<BreakerBody>, isColoured = false): string {
  return accountLine({ ...closed, ...breaker }, now, paintFor(isColoured));
}

describe('The account line', () => {
  it('is empty if nothing is known and nothing is blocked', () => {
    expect(line({})).toBe('');
  });

  it('shows for how long jobs are blocked, and why', () => {
    expect(line({ state: 'open', reason: 'auth', since: inTenMinutes, until: inTenMinutes })).toBe(
      'jobs blocked for 10 min: auth',
    );
    expect(line({ state: 'half_open', reason: 'quota' })).toBe('quota: the next job decides');
  });

  it('lists only the blocked models, with escaped control characters', () => {
    const models = [
      { model: 'opus\u001b', state: 'open', reason: 'quota', until: inTenMinutes } as const,
      { model: '', state: 'half_open', reason: 'quota' } as const,
    ];
    const shown = 'opus\\x1b: jobs blocked for 10 min: quota   jobs without a model: quota: the next job decides';
    expect(line({ models })).toBe(shown);
  });

  it('shows the usage of each window, and highlights nearly used-up ones', () => {
    const windows = [
      { name: 'five_hour', status: 'warning', utilization: 0.924, resets_at: inTenMinutes } as const,
      { name: 'seven_day', status: 'allowed', utilization: 0.4, resets_at: null } as const,
      { name: 'other', status: 'rejected', utilization: null, resets_at: '2026-01-31T11:00:00.000Z' } as const,
    ];
    expect(line({ windows })).toBe(
      'five_hour 92 % (reset in 10 min)   seven_day 40 %   other rejected (reset in 0 ms)',
    );
    expect(line({ windows }, true)).toContain('five_hour \u001b[33m92 %\u001b');
  });
});

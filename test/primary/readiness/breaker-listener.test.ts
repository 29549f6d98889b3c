import { breakerListener } from '../../../src/primary/readiness/breaker-listener.js';
import type { ReadinessEntry, ReadinessTrigger } from '../../../src/shared/health.js';
import { LogBook } from '../../support/log-book.js';

function listen() {
  const told: string[] = [];
  const log = new LogBook();
  const listener = breakerListener({
    runner: { cutHeld: () => void told.push('cut') },
    readiness: {
      check: (trigger: ReadinessTrigger) => {
        told.push(`check ${trigger}`);
        return new Promise<ReadinessEntry>(() => {});
      },
    },
    pool: { flush: async () => void told.push('flush') },
    changed: () => void told.push('caretaker'),
    log,
    publicName: (model) => model,
  });
  return { listener, told, log };
}

const status = { model: null, reason: 'quota', since: 0, until: Date.UTC(2026, 0, 1) } as const;

describe('A change of the breaker', () => {
  it('ends what waits, has the readiness checked, and is in the log', () => {
    const { listener, told, log } = listen();
    listener.changed({ ...status, state: 'open' });
    expect(told).toEqual(['cut', 'check failure', 'caretaker']);
    const fields = { reason: 'quota', model: null, until: '2026-01-01T00:00:00.000Z' };
    expect(log.entries).toEqual([{ level: 'warn', event: 'breaker_open', fields }]);
  });

  it('ends what waits with the credential that is refused to the whole account', () => {
    const { listener, told } = listen();
    listener.changed({ ...status, reason: 'auth', state: 'open' });
    listener.changed({ ...status, reason: 'auth', model: 'opus', state: 'open' });
    expect(told.filter((each) => each === 'flush')).toHaveLength(1);
  });

  it('ends nothing where jobs are let through again', () => {
    const { listener, told, log } = listen();
    listener.changed({ ...status, until: null, state: 'half_open' });
    listener.changed({ ...status, until: null, reason: null, state: 'closed' });
    expect(told).toEqual(['check failure', 'caretaker', 'check failure', 'caretaker']);
    expect(log.events).toEqual(['breaker_closed']);
  });

  it('is told before it comes, by a window that is about to close', () => {
    const { listener, log } = listen();
    listener.windowClosing({ name: 'seven_day', status: 'warning', utilization: 0.9, resetsAt: null });
    const fields = { window: 'seven_day', utilization: 0.9, resets_at: null };
    expect(log.entries).toEqual([{ level: 'warn', event: 'quota_warning', fields }]);
  });
});

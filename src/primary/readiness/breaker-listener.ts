import { timestamp } from '../../shared/clock.js';
import type { Logger } from '../../shared/log/logger.js';
import type { BreakerListener } from '../limits/breaker.js';
import type { Readiness } from './readiness.js';

/** Who is told of the breaker of one CLI. */
export interface BreakerAudience {
  readonly runner: { cutHeld(): void };
  readonly readiness: Pick<Readiness, 'check'>;
  /** The processes of the CLI. */
  readonly pool: { flush(): Promise<void> };
  /** Something has changed that decides about starts in advance. */
  readonly changed: () => void;
  readonly log: Logger;
  /** What requests call the model of a circuit. */
  readonly publicName: (model: string | null) => string | null;
}

/** Who is told when the breaker changes. The readiness is checked, so that the history shows each change. */
export function breakerListener({
  runner,
  readiness,
  pool,
  changed,
  log,
  publicName,
}: BreakerAudience): BreakerListener {
  return {
    changed: (status) => {
      const { state, reason, until } = status;
      const model = publicName(status.model);
      if (state === 'open') {
        log.warn('breaker_open', { reason, model, until: until === null ? null : timestamp(until) });
        runner.cutHeld();
        if (reason === 'auth' && status.model === null) void pool.flush(); // they hold the credential that is refused
      }
      if (state === 'closed') log.info('breaker_closed', { model });
      void readiness.check('failure');
      changed();
    },
    windowClosing: ({ name, utilization, resetsAt }) =>
      log.warn('quota_warning', {
        window: name,
        utilization,
        resets_at: resetsAt === null ? null : timestamp(resetsAt),
      }),
  };
}

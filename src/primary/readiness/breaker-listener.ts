import { timestamp } from '../../shared/clock.js';
import type { Logger } from '../../shared/logger.js';
import type { Caretaker } from '../cli/pool/caretaker.js';
import type { JobRunner } from '../jobs/job-runner.js';
import type { BreakerListener } from '../limits/breaker.js';
import type { Readiness } from './readiness.js';

export interface BreakerAudience {
  readonly runner: Pick<JobRunner, 'cutHeld'>;
  readonly readiness: Pick<Readiness, 'check'>;
  readonly caretaker: Pick<Caretaker, 'changed'>;
  readonly host: { readonly log: Logger };
}

/** Who is told when the breaker changes. The readiness is checked, so that the history shows each change. */
export function breakerListener({ runner, readiness, caretaker, host }: BreakerAudience): BreakerListener {
  const { log } = host;
  return {
    changed: ({ state, model, reason, until }) => {
      if (state === 'open') {
        log.warn('breaker_open', { reason, model, until: until === null ? null : timestamp(until) });
        runner.cutHeld();
      }
      if (state === 'closed') log.info('breaker_closed', { model });
      void readiness.check('failure');
      caretaker.changed();
    },
    windowClosing: ({ name, utilization, resetsAt }) =>
      log.warn('quota_warning', {
        window: name,
        utilization,
        resets_at: resetsAt === null ? null : timestamp(resetsAt),
      }),
  };
}

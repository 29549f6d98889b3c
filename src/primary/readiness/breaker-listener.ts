import { timestamp } from '../../shared/clock.js';
import type { Logger } from '../../shared/logger.js';
import type { ProcessPool } from '../cli/pool/process-pool.js';
import type { JobRunner } from '../jobs/job-runner.js';
import type { BreakerListener } from '../limits/breaker.js';
import type { CircuitStatus } from '../limits/circuit.js';
import type { Readiness } from './readiness.js';

export interface BreakerAudience {
  readonly runner: Pick<JobRunner, 'cutHeld'>;
  readonly readiness: Pick<Readiness, 'check'>;
  readonly pool: Pick<ProcessPool, 'flush'>;
  /** Something has changed that decides about starts in advance. */
  readonly changed: () => void;
  readonly log: Logger;
  /** What the model of a circuit is called. */
  readonly named: (status: CircuitStatus) => CircuitStatus;
}

/** Who is told when the breaker changes. The readiness is checked, so that the history shows each change. */
export function breakerListener({ runner, readiness, pool, changed, log, named }: BreakerAudience): BreakerListener {
  return {
    changed: (status) => {
      const { state, model, reason, until } = named(status);
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

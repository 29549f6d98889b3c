import type { RenewalFaultBody } from '../../shared/api/health.js';
import { timestamp } from '../../shared/clock.js';
import type { RenewalFault } from '../../shared/health.js';
import { formatCount } from '../../shared/text/format.js';
import type { ModelCli } from '../cli/model-cli.js';

const attempts = { renewal: 'is renewed', rewinding: 'is rewound' } as const;
const reasons = {
  late: 'the model CLI has not answered within a second',
  unproven: 'the model CLI has not proven what is left in its context',
  memory: 'memory is short',
} as const;

/**
 * Returns the failed or paused attempts of these CLIs to empty a process for the next question (renewal) or to go back
 * in its conversation (rewinding), and why.
 */
export function renewalFaultsOf(clis: readonly Pick<ModelCli, 'names' | 'pool'>[]): RenewalFaultBody[] {
  return clis.flatMap(({ names, pool }) =>
    pool.renewalFaults.map((fault) => {
      const { kind, reason, failingClients, pausedClients, until } = fault;
      return {
        ...{ ...names, kind, reason, message: messageOf(fault) },
        ...{ failing_clients: failingClients, paused_clients: pausedClients },
        until: until === null ? null : timestamp(until),
      };
    }),
  );
}

function messageOf({ kind, reason, failingClients, pausedClients }: RenewalFault): string {
  const whom = reason === 'memory' ? '' : ` for ${formatCount(failingClients, 'client')}`;
  const pause = pausedClients === 0 ? '' : `, for ${pausedClients} of them not again for an hour`;
  return `no process ${attempts[kind]}${whom}${pause}: ${reasons[reason]}`;
}

import type { CreatePrimaryPart } from '../../primary/features/feature.js';
import type { JobGate } from '../../primary/jobs/ticket.js';

/**
 * Creates the part that limits the running jobs of each group. A job has the gates of all its groups, because a line may
 * get a limit while the job waits.
 */
export const createGroups: CreatePrimaryPart = ({ clients }) => {
  const maxRunningOf = (name: string) => {
    const limit = clients.findGroup(name)?.featureOptions.running;
    return limit === undefined ? null : Number(limit);
  };
  const gateOf = (name: string): JobGate => ({
    name: `@${name}`,
    reason: 'group',
    maxRunning: () => maxRunningOf(name),
  });
  return {
    job: { gatesOf: ({ client, groups }) => clients.groupsOf(client, groups ?? []).map(({ name }) => gateOf(name)) },
    handlers: {},
  };
};

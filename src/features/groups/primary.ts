import type { CreatePrimaryPart } from '../../primary/features/feature.js';
import type { JobGate } from '../../primary/jobs/ticket.js';
import { groupUsage } from '../../shared/client.js';
import type { JobRequest } from '../../shared/job.js';

/**
 * Creates the part that limits the running jobs of each group, and lets the members of a group divide its share. A job has
 * the gates of all its groups, because a line may get a limit while the job waits.
 */
export const createGroups: CreatePrimaryPart = ({ clients }) => {
  const numberOf = (name: string, option: 'running' | 'share') => {
    const text = clients.findGroup(name)?.featureOptions[option];
    return text === undefined ? null : Number(text);
  };
  const gateOf = (name: string): JobGate => ({
    name: `@${name}`,
    reason: 'group',
    maxRunning: () => numberOf(name, 'running'),
  });
  const groupsOf = ({ client, groups = [] }: JobRequest) =>
    clients.groupsOf(client, [...groups, ...clients.countedGroupsOf(client)]);
  return {
    job: {
      gatesOf: (request) => groupsOf(request).map(({ name }) => gateOf(name)),
      shareOf: (request) => {
        const group = groupsOf(request).find(({ featureOptions }) => featureOptions.share !== undefined);
        if (group === undefined) return null;
        return { name: groupUsage(group.name), weight: () => numberOf(group.name, 'share') ?? 1 };
      },
    },
    handlers: {},
  };
};

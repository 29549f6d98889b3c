import type { CreatePrimaryPart } from '../../primary/features/feature.js';
import type { ClientText } from '../../shared/client.js';
import { RelayError } from '../../shared/errors.js';

/** Creates the part that decides which jobs go before others. */
export const createPriority: CreatePrimaryPart = ({ clients }) => {
  const mayGoFirst = (client: ClientText) => clients.optionsOf(client).featureOptions.priority === 'on';
  return {
    job: {
      check: ({ priority, client }) => {
        if (priority === 'priority' && !mayGoFirst(client))
          throw new RelayError('forbidden', 'X-Priority: priority needs an API key with the option priority=on');
      },
      rank: ({ priority, client }) => {
        if (priority === 'flex') return 'patient';
        const isFirst = priority === 'priority' || priority === 'preferred';
        return isFirst && mayGoFirst(client) ? 'urgent' : null;
      },
    },
    handlers: {},
  };
};

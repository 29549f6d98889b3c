import type { CreatePrimaryPart } from '../../primary/features/feature.js';
import type { Handlers } from '../../shared/ipc/peer.js';
import type { calls, SignOnValues } from './shared.js';

export function createSignOn(values: SignOnValues): CreatePrimaryPart {
  const { MODEL_API_USER_HEADER: userHeader, MODEL_API_GROUPS_HEADER: groupsHeader } = values;
  return ({ clients }) => {
    const handlers: Handlers<typeof calls> = {
      signOnHeaders: () => ({ userHeader, groupsHeader }),
      signedOn: ({ client, groups }) => clients.recordPerson(client, groups),
    };
    return { handlers };
  };
}

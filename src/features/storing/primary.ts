import type { CreatePrimaryPart, PrimaryCore } from '../../primary/features/feature.js';
import { type ClientText, holderOf } from '../../shared/client.js';
import { storingIsOff } from '../../shared/errors.js';
import { preventsStoring } from './shared.js';

/** Creates the part that says of which clients nothing is stored, and refuses their background jobs. */
export const createStoring: CreatePrimaryPart = ({ clients, store }) => {
  const mayStore = (client: ClientText) => maySave(clients, client);
  const areConversationsShared = store.isShared;
  return {
    mayStore,
    job: {
      check: ({ operation, client }) => {
        if (operation === 'chat' && areConversationsShared && !mayStore(client))
          throw storingIsOff('conversations that several hosts share');
      },
      admit: ({ client }) => {
        if (!mayStore(client)) throw storingIsOff('background jobs');
      },
    },
    handlers: {},
  };
};

/** Whether neither the key, nor its person, nor a group of both prevents it. A group whose line has a fault may have prevented it. */
function maySave(clients: Pick<PrimaryCore['clients'], 'optionsOf' | 'groupsOf'>, client: ClientText): boolean {
  const both = [client, holderOf(client)];
  const own = both.map((each) => clients.optionsOf(each).featureOptions);
  const groups = both.flatMap((each) => clients.groupsOf(each));
  return (
    ![...own, ...groups.map(({ featureOptions }) => featureOptions)].some(preventsStoring) &&
    !groups.some(({ isClosed }) => isClosed)
  );
}

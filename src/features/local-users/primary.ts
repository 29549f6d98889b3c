import type { CreatePrimaryPart } from '../../primary/features/feature.js';
import type { Handlers } from '../../shared/ipc/peer.js';
import type { calls } from './shared.js';

export const createLocalUsers: CreatePrimaryPart = ({ config: { localUsers, allowedUsers } }) => {
  const handlers: Handlers<typeof calls> = { userSettings: () => ({ localUsers, allowedUsers }) };
  return { handlers };
};

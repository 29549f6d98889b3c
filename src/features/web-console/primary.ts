import type { CreatePrimaryPart } from '../../primary/features/feature.js';
import type { Handlers } from '../../shared/ipc/peer.js';
import type { calls } from './shared.js';

/** Creates the part that tells the workers whether to serve the console. */
export const createWebConsole: CreatePrimaryPart = ({ config }) => {
  const handlers: Handlers<typeof calls> = { hasConsole: () => ({ hasConsole: config.console === 'on' }) };
  return { handlers };
};

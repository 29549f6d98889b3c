import { join } from 'node:path';
import { RateLimit } from '../../primary/access/rate-limit.js';
import type { CreatePrimaryPart } from '../../primary/features/feature.js';
import type { Handlers } from '../../shared/ipc/peer.js';
import { sharedMadeKeys } from './made-key-store.js';
import { MadeKeys, ownActs } from './made-keys.js';
import { madeKeysFile } from './made-keys-file.js';
import { type calls, stateFileName } from './shared.js';

export const createKeysApi: CreatePrimaryPart = (core) => {
  const { host, store, clients, fileFaults, config, sendKeys, beforeAct, reportsCosts } = core;
  const { keyOptions, stateFolder } = config;
  const { clock, log } = host;
  const shared = store.openText('made-keys');
  const ownFile = stateFolder === null ? null : madeKeysFile(join(stateFolder, stateFileName), keyOptions);
  const keys = new MadeKeys({
    ...{ clients, keyOptions, onChange: sendKeys, beforeAct, fileFaults, reportsCosts, clock, log },
    store: shared === null ? ownFile : sharedMadeKeys(shared, keyOptions),
    ownActsLimit: new RateLimit((client) => [{ client, rate: ownActs }], clock),
  });
  const handlers: Handlers<typeof calls> = {
    makeKey: ({ by, name, options }) => keys.make(by, name, options),
    changeKey: ({ by, name, options }) => keys.change(by, name, options),
    removeKey: ({ by, name }) => keys.remove(by, name),
    rotateKey: ({ by, name, oldUntil }) => keys.rotate(by, name, oldUntil),
    listKeys: ({ by }) => ({ keys: keys.list(by) }),
  };
  return {
    handlers,
    refreshKeys: async () => (config.needsKey ? keys.refresh() : undefined),
    removeClients: async (isAmong, by) => ({ keys: await keys.removeOf(isAmong, by) }),
    findKeyWarnings: () => keys.findWarnings(),
  };
};

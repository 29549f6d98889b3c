import { join } from 'node:path';
import { RateLimit } from '../../primary/access/rate-limit.js';
import type { PrimaryCore, PrimaryPart } from '../../primary/features/feature.js';
import type { Counts } from '../../primary/store/contract/store.js';
import type { ClientText } from '../../shared/client.js';
import type { Handlers } from '../../shared/ipc/peer.js';
import { usingStore } from '../stores/contract/full-store.js';
import { sharedMadeKeys } from './made-key-store.js';
import { MadeKeys, ownActs } from './made-keys.js';
import { madeKeysFile } from './made-keys-file.js';
import { type calls, stateFileName } from './shared.js';

export const createKeysApi = usingStore((core) => {
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
  return new KeysPart(keys, config.needsKey);
});

/** Returns the keys that were made over HTTP, for features that come later in the list. */
export function madeKeysOf({ earlierParts }: Pick<PrimaryCore, 'earlierParts'>): MadeKeys {
  const part = earlierParts.find((each) => each instanceof KeysPart);
  if (part === undefined) throw new Error('the keys made over HTTP must come earlier in the list of features');
  return part.keys;
}

class KeysPart implements PrimaryPart {
  readonly keys: MadeKeys;
  readonly handlers: Handlers<typeof calls>;
  readonly #needsKey: boolean;

  constructor(keys: MadeKeys, needsKey: boolean) {
    this.keys = keys;
    this.#needsKey = needsKey;
    this.handlers = {
      makeKey: ({ by, name, options }) => keys.make(by, name, options),
      changeKey: ({ by, name, options }) => keys.change(by, name, options),
      removeKey: ({ by, name }) => keys.removeKey(by, name),
      rotateKey: ({ by, name, oldUntil }) => keys.rotate(by, name, oldUntil),
      listKeys: ({ by }) => ({ keys: keys.listKeys(by) }),
    };
  }

  async refreshKeys(): Promise<void> {
    if (this.#needsKey) await this.keys.refresh();
  }

  recordsOf(client: ClientText) {
    return { made_key: this.keys.findRecords(client) };
  }

  async removeClients(...[isAmong, by]: Parameters<NonNullable<PrimaryPart['removeClients']>>): Promise<Counts> {
    return { keys: await this.keys.removeOf(isAmong, by) };
  }

  findKeyWarnings(): readonly string[] {
    return this.keys.findWarnings();
  }
}

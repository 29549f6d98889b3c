import { RateLimit } from '../../primary/access/rate-limit.js';
import type { CreatePrimaryPart } from '../../primary/features/feature.js';
import type { StoredKind } from '../../primary/features/stored-kind.js';
import type { Handlers } from '../../shared/ipc/peer.js';
import { usingStore } from '../stores/contract/full-store.js';
import { recordsPlace } from '../stores/stored-records.js';
import { LentKeys, lendingRate } from './lent-keys.js';
import type { calls, LentKeyValues } from './shared.js';

/** Creates the part that makes, stores and ends lent keys. */
export function createLentKeys({ MODEL_API_MAX_LENT_HOURS: maxHours }: LentKeyValues): CreatePrimaryPart {
  return usingStore((core) => {
    const { host, clients, sendKeys, beforeAct } = core;
    const { clock, log } = host;
    const { shared, path, place } = recordsPlace(core, 'lent-keys');
    const keys = new LentKeys({
      ...{ clients, sendKeys, beforeAct, clock, log, shared, path },
      maxMs: maxHours * 3_600_000,
      limit: new RateLimit((client) => [{ client, rate: lendingRate }], clock),
    });
    const handlers: Handlers<typeof calls> = {
      lendKey: (order) => keys.lend(order),
      listLentKeys: (order) => ({ keys: keys.list(order) }),
      endLentKey: (order) => keys.endKey(order),
    };
    return {
      handlers,
      refreshKeys: () => keys.refresh(),
      recordsOf: (client) => ({ lent_key: keys.findRecords(client) }),
      removeClients: async (isAmong) => ({ keys: await keys.removeOf(isAmong) }),
      storedKinds: [storedKeys(place)],
    };
  });
}

function storedKeys(place: StoredKind['place']): StoredKind {
  return {
    ...{ kind: 'lent keys', content: 'digests of lent keys, with the clients that have lent them', place },
    ...{ keptMs: null, until: 'until the lent key ends', readers: ['client', 'admin', 'host'] },
    ...{ export: 'GET /lent-keys', deletion: 'DELETE /lent-keys/{id}', variables: ['MODEL_API_MAX_LENT_HOURS'] },
  };
}

import { ConfigFault } from '../../shared/config/config.js';
import type { StorePlace } from '../../shared/config/stores.js';
import type { OpenedStore, StoreParts, StoreProvider } from '../hosts/hosts.js';
import { StoreFault } from './contract/store.js';
import { noStore } from './memory-store.js';

/** Throws a ConfigFault if this host cannot open a store of this kind. */
export function checkKind({ kind }: Pick<StorePlace, 'kind'>, providers: readonly StoreProvider[]): void {
  const fault = providers.find((provider) => provider.kind === kind)?.findFault?.() ?? null;
  if (fault !== null) throw configFaultOf(fault);
}

/** Opens the store. Throws a ConfigFault for a problem that the operator must fix. */
export async function openStore(
  place: StorePlace,
  providers: readonly StoreProvider[],
  parts: StoreParts,
): Promise<OpenedStore> {
  checkKind(place, providers);
  const provider = providers.find(({ kind }) => kind === place.kind);
  if (provider === undefined) return { store: noStore, hosts: null };
  return provider.open(place, parts).catch((error: unknown) => {
    throw asConfigFault(error);
  });
}

/** Converts a StoreFault to a ConfigFault; returns any other error unchanged. */
export function asConfigFault(error: unknown): unknown {
  return error instanceof StoreFault ? configFaultOf(error.message) : error;
}

function configFaultOf(sentence: string): ConfigFault {
  return new ConfigFault([`MODEL_API_STORE: ${sentence}`]);
}

import type { StoringCore } from '../../../src/features/stores/contract/full-store.js';
import type { UsageStore } from '../../../src/features/stores/contract/usage.js';
import { memoryStore } from '../../../src/features/stores/memory/memory-store.js';
import { UsagePart } from '../../../src/features/usage/primary.js';
import type { PrimaryCore } from '../../../src/primary/features/feature.js';
import type { ClientText } from '../../../src/shared/client.js';
import type { Clock } from '../../../src/shared/clock.js';
import type { FakeClock } from '../basics/fake-clock.js';

/** Parts of the core that a test replaces. */
interface TestParts {
  readonly formerClientsOf?: (client: ClientText) => readonly ClientText[];
  readonly limitUsesOf?: PrimaryCore['limitUsesOf'];
  readonly onDefect?: (thrown: unknown) => void;
  /** Stores the usage beyond the end of the part; null for a service without such a store. */
  readonly usage?: UsageStore | null;
}

/** Creates the part of the feature that counts the usage. */
export function usagePart(
  clock: Clock | FakeClock,
  { formerClientsOf = () => [], limitUsesOf = () => [], onDefect = () => {}, usage = null }: TestParts = {},
): UsagePart {
  const core = {
    host: { clock, heap: { touch: () => {} }, defects: { record: onDefect } },
    clients: { formerClientsOf },
    store: usage === null ? memoryStore([]) : { usage },
    config: { store: { kind: usage === null ? 'memory' : 'sqlite' } },
    limitUsesOf,
  };
  return new UsagePart(core as unknown as StoringCore);
}

/** Store of usage in memory, which survives the parts that use it. */
export class UsageInMemory implements UsageStore {
  readonly report = null;
  rows: Parameters<UsageStore['addUsage']>[0] = [];

  async *restoreUsage() {
    yield* this.rows;
  }

  async addUsage(rows: UsageInMemory['rows']): Promise<void> {
    this.rows = [...this.rows, ...rows];
  }
}

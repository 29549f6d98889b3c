import type { Histogram, Registry } from 'prom-client';
import type { Logger } from '../../shared/log/logger.js';
import { histogram } from '../../shared/metrics/families.js';
import { type StoreObserver, type StoreOperation, storeOperations } from '../store/contract/store.js';

/** From a write into a page cache to a disk that is busy with others. */
const buckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

/** Owns how long the store takes. One in memory takes no time, and is not measured. */
export class StoreMetrics {
  readonly #seconds: Histogram<'operation'>;

  constructor(registry: Registry) {
    const help = 'Time until the store had done what it was asked for, or had failed; of the store in memory nothing.';
    this.#seconds = histogram(registry, 'store_operation_seconds', help, buckets, 'operation');
    for (const operation of storeOperations) this.#seconds.zero({ operation });
  }

  done(operation: StoreOperation, ms: number): void {
    this.#seconds.observe({ operation }, ms / 1000);
  }
}

/** What follows from what the store tells. */
export function storeListener(log: Logger, metrics: { readonly store: Pick<StoreMetrics, 'done'> }): StoreObserver {
  return {
    done: (operation, ms) => metrics.store.done(operation, ms),
    down: (error) => log.error('store_down', { error }),
    back: () => log.info('store_back'),
    warned: (error) => log.warn('store_warning', { error }),
  };
}

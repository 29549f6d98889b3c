import type { Logger } from '../../shared/logger.js';
import type { PrimaryMetrics } from '../metrics/primary-metrics.js';
import type { StoreObserver } from '../store/store.js';

/** What follows from what the store tells. */
export function storeListener(log: Logger, metrics: Pick<PrimaryMetrics, 'store'>): StoreObserver {
  return {
    done: (operation, ms) => metrics.store.done(operation, ms),
    down: (error) => log.error('store_down', { error }),
    back: () => log.info('store_back'),
    warned: (error) => log.warn('store_warning', { error }),
  };
}

import { serviceExits } from '../shared/exit-codes.js';
import type { FleetEvents } from './fleet/fleet-events.js';
import type { World } from './host/world.js';
import type { PrimaryMetrics } from './metrics/primary-metrics.js';
import type { Scrape } from './metrics/scrape.js';
import type { Supervisor } from './supervisor.js';

export interface FleetListeners {
  readonly supervisor: () => Supervisor;
  readonly scrape: Scrape;
  readonly metrics: PrimaryMetrics;
  readonly world: World;
}

/** What follows from what the workers do: readiness to serve, figures, or giving up. */
export function observeFleet({ supervisor, scrape, metrics, world }: FleetListeners): FleetEvents {
  const { log, openSocket } = world;
  return {
    socketOpened: (path) => {
      openSocket(path).catch((error: Error) => log.error('listen_failed', { error: error.message }));
    },
    listening: ({ host, port }) => {
      if (supervisor().becomeReady()) log.info('service_ready', { host, port });
    },
    unavailable: (reason) => {
      log.error('workers_unavailable', { reason });
      void supervisor().fail(serviceExits.unavailable);
    },
    joined: (worker) => scrape.join(worker),
    heard: (worker, snapshot) => scrape.heard(worker, snapshot),
    left: (worker) => scrape.retire(worker),
    restarted: (cause) => metrics.workerRestarted(cause),
  };
}

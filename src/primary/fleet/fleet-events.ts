import type { Occupant, RestartCause } from './seat.js';

/** What the fleet tells of its workers. */
export interface FleetEvents {
  /** A worker listens at this Unix socket, and not yet at its port; called for every one. */
  socketOpened(path: string): void;
  /** A worker listens at this address, and is ready; called for every one. */
  listening(address: { readonly host: string; readonly port: number }): void;
  /** No worker has ever listened and there is no hope that one will. */
  unavailable(reason: string): void;
  /** A worker can be asked what it has counted. */
  joined(worker: Occupant): void;
  /** What a worker has counted so far, as JSON text. */
  heard(worker: Occupant, snapshot: string): void;
  left(worker: Occupant): void;
  restarted(cause: RestartCause): void;
}

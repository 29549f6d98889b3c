import type { Config } from '../../shared/config/config.js';
import type { ClientOptions } from './clients.js';

/** What one client may have of what all clients share: the holder of a key together with all names that it speaks for. */
export interface ClientBounds {
  /** Jobs that may hold a slot at once. */
  readonly maxRunning: number;
  /** Places in the queue that it may hold at any time; null: a quarter of the queue while there are others, else all. */
  readonly maxQueued: number | null;
  /** Turns that it has in each round, and shares of what waits: 1 for most. */
  readonly weight: number;
}

/** The bounds of a client as they are now: those of a key may change while the service runs. */
export type BoundsOf = (client: string) => ClientBounds;

const unbounded: ClientBounds = { maxRunning: Number.POSITIVE_INFINITY, maxQueued: null, weight: 1 };

export const noBounds: BoundsOf = () => unbounded;

/** The bounds of the client's key where it has its own, else those of the configuration. */
export function clientBounds(
  config: Pick<Config, 'clientMaxConcurrent' | 'clientMaxQueue'>,
  optionsOf: (client: string) => Pick<ClientOptions, 'maxConcurrent' | 'maxQueued' | 'weight'>,
): BoundsOf {
  const { clientMaxConcurrent, clientMaxQueue } = config;
  const commonRunning = clientMaxConcurrent === 0 ? unbounded.maxRunning : clientMaxConcurrent;
  return (client) => {
    const { maxConcurrent, maxQueued, weight } = optionsOf(client);
    const maxRunning = maxConcurrent ?? commonRunning;
    return { maxRunning, maxQueued: maxQueued ?? clientMaxQueue, weight: weight ?? 1 };
  };
}

/** A quarter is never one client's alone, whatever its weight. */
const maxQuarters = 3;

/** What is one client's own of something that all share: a quarter, and as many quarters as its weight says. */
export function quarterOf(whole: number, weight = 1): number {
  return Math.max(1, Math.ceil((whole * Math.min(weight, maxQuarters)) / 4));
}
